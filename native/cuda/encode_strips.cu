// The encode of E4M3 by round to nearest where one scale covers many rows and columns, as blocks of 128 x 128 do.
//
// A warp takes a strip: 32 blocks of a row, a lane a block, then the rows below. Under one source scale s the code of
// an element is a matter of its magnitude m alone, which has four bits, and binary16 has eleven: there is a factor h of
// which m * h, in binary16, goes where the quotient m * s / (2 d) goes, ties included, two elements at once. It depends
// on d's mantissa, and on its exponent only by as many powers of two, for nothing rounds otherwise when s, d and a weight
// change by powers of two. So 32 lanes find it once a strip, for eight mantissas of d and four source scales: by true
// quotients the least magnitude of each code, which, and the one before it, must have their codes under h; those between
// have theirs then, too, for products order as magnitudes do. Where there is no such h, blocks are encoded one by one.
#include "encode.cuh"
#include "encode_codes.h"
#include "halves.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kEachByte = 0x01010101u;
constexpr int kCodeBias = 7;         // of E4M3's exponent, which has eight codes
constexpr int kHalfBias = 15;        // of binary16's

// The factors of blocks, as binary16's bits: no subnormal and no infinite ones.
constexpr int32_t kLeastFactor = 0x0400;
constexpr int32_t kMostFactor = 0x7bff;
constexpr int32_t kNoEntry = 1 << 30;  // beyond them whatever the block's scale is

// The source scales for which no weight, and no step of the search for thresholds, leaves the ordinary range.
constexpr float kMostStripScale = 0x1p51f;

// The least code, of a format like E4M3 without subnormals, whose quotient passes the midpoint.
__device__ __forceinline__ int threshold(float midpoint, bool tie_passes, float source_scale, float d, float inverse) {
  float near = midpoint * d * approximate_reciprocal(source_scale);
  int code = static_cast<int>(__float_as_uint(near) >> 20) - ((127 - kCodeBias) << 3);
  int first = code;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float magnitude = __uint_as_float(static_cast<uint32_t>(code + i + ((127 - kCodeBias) << 3)) << 20);
    float quotient = divide(__fmul_rn(magnitude, source_scale), d, inverse);
    first += tie_passes ? quotient < midpoint : quotient <= midpoint;
  }

  return first;
}

// Whether under a factor, in both halves, a threshold's magnitude has the code and the magnitude before has the one
// before.
__device__ __forceinline__ uint32_t misses(int threshold, uint32_t code, uint32_t factor) {
  uint32_t bits = static_cast<uint32_t>(threshold + ((kHalfBias - kCodeBias) << 3)) << 7;
  uint32_t pair = (bits - (1 << 7)) | bits << 16;
  return add_codes<1>(pair, factor, kHalfMagic) ^ (kHalfMagic + (code - 1) + (code << 16));
}

// The lane's factor, as binary16's bits were its exponent unbounded: of scales of mantissa 1 + lane % 8 / 8 and exponent 0
// under the lane's source scale.
__device__ __forceinline__ int32_t find_entry(const Rule &rule, float source_scale, int lane) {
  if (!rule.ordinary || !(source_scale >= kLeastSourceScale && source_scale <= kMostStripScale)) {
    return kNoEntry;
  }

  float d = rule.factor(1 + (lane & 7) / 8.0f);
  float inverse = __frcp_rn(d);
  // Without the ratio's exponent, so that the factor is from 0.5 to 1.
  uint32_t ratio = __float_as_uint(source_scale * inverse);
  int exponent = static_cast<int>(ratio >> 23) - 127;
  uint32_t nearest = to_half(__uint_as_float((ratio & 0x7fffffu) | 126u << 23));
  int first = threshold(0.25f, false, source_scale, d, inverse) + 8 * exponent;
  int second = threshold(0.75f, true, source_scale, d, inverse) + 8 * exponent;
  int third = threshold(1.25f, false, source_scale, d, inverse) + 8 * exponent;
  int fourth = threshold(1.75f, true, source_scale, d, inverse) + 8 * exponent;
#pragma unroll 1
  for (int i = 0; i < 3; i++) {
    // The nearest, one below, one above.
    uint32_t bits = i == 0 ? nearest : nearest - 3 + 2 * i;
    uint32_t factor = bits * 0x10001u;
    if ((misses(first, 1, factor) | misses(second, 2, factor) | misses(third, 3, factor) | misses(fourth, 4, factor) |
         misses(third + 8, 5, factor) | misses(fourth + 8, 6, factor) | misses(third + 16, 7, factor)) == 0) {
      return static_cast<int32_t>(bits) + (exponent << 10);
    }
  }

  return kNoEntry;
}

// A block's magnitudes, elements of even and of odd number apart.
struct Magnitudes {
  uint32_t signs[4];   // bit 7 of a byte: whether an element is below zero; even and odd ones of the first eight, the last
  uint32_t halves[8];  // in binary16, two each

  __device__ __forceinline__ explicit Magnitudes(const Block<E4m3> &block) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t codes = __byte_perm(block.words[i & 2], block.words[(i & 2) + 1], i % 2 == 0 ? 0x6420 : 0x7531);
      uint32_t bytes = codes & 0x7f * kEachByte;
      signs[i] = codes & (bytes + 0x7f * kEachByte) & 0x80 * kEachByte;
      halves[2 * i] = e4m3_to_halves(bytes);
      halves[2 * i + 1] = e4m3_to_halves(bytes >> 16);
    }
  }

  // NaN where there is one.
  __device__ __forceinline__ float largest() const {
    uint32_t max[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      max[i] = max_pair<F16>(halves[i], halves[i + 4]);
    }

    uint32_t pair = max_pair<F16>(max_pair<F16>(max[0], max[1]), max_pair<F16>(max[2], max[3]));
    return low_half<F16>(max_pair<F16>(pair, __byte_perm(pair, pair, 0x1032)));
  }

  __device__ __forceinline__ uint32_t encode_eight(int half, uint32_t factor) const {
    const uint32_t *even = &halves[4 * half];
    uint32_t bytes[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t odd = add_codes<16>(even[2 + i], factor, kHalfMagic16);
      bytes[i] = add_codes<1>(even[i], factor, from_magic16(odd));
    }

    return __byte_perm(bytes[0], bytes[1], 0x6420) | signs[2 * half] >> 4 | signs[2 * half + 1];
  }
};

// Two blocks of a column, the second of which may be the first again.
struct BlockPair {
  Block<E4m3> block[2];

  __device__ __forceinline__ void load(const unsigned char *source, int64_t apart, bool aligned) {
    block[0].load(source, aligned);
    block[1].load(source + apart, aligned);
  }
};

template <bool kSums, bool kModelopt>
__global__ void __launch_bounds__(kThreads, kSums ? 3 : 4)
    encode_strips_kernel(const __grid_constant__ Batch batch, const __grid_constant__ Encode encode) {
  admit_next_launch();
  Rule rule;
  const ScaleRule *made = load_rule(encode, &rule);
  if (made == nullptr) {
    return conclude_last(batch, encode);
  }

  rule.modelopt = kModelopt;
  uint32_t lane = threadIdx.x % 32;
  uint32_t row_blocks = encode.source.row_blocks.divisor;
  uint32_t row_strips = (row_blocks + 31) / 32;
  bool aligned_out = is_aligned(encode.packed, 8);
  uint32_t largest = 0;
  ThreadSums sums;
  int segment_index = 0;
  int summed = -1;
  for (uint32_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    uint32_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    uint32_t strip = (tile - segment.first_tile) * (kThreads / 32) + threadIdx.x / 32;
    uint32_t group = strip / row_strips;
    uint32_t column = (strip - group * row_strips) * 32 + lane;
    bool mine = column < row_blocks;
    column = mine ? column : row_blocks - 1;
    uint32_t rows = divide(segment.blocks, encode.source.row_blocks);
    uint32_t row = group * kStripRows;
    if (row >= rows) {
      continue;
    }

    uint32_t end = min(row + kStripRows, rows);
    bool aligned = is_aligned(segment.data, 16);
    int64_t row_bytes = static_cast<int64_t>(row_blocks) * E4m3::kBlockBytes;
    const unsigned char *source = segment.data + (static_cast<int64_t>(row) * row_blocks + column) * E4m3::kBlockBytes;
    float scale = source_scale(encode.source, segment.scales, row * row_blocks + column);
    BlockPair next;
    next.load(source, row + 1 < end ? row_bytes : 0, aligned);
    // While those are on their way.
    uint32_t entry = find_entry(rule, scale, lane);
    for (; row < end; row += 2, source += 2 * row_bytes) {
      bool both = row + 1 < end;
      BlockPair pair = next;
      if (row + 2 < end) {
        next.load(source + 2 * row_bytes, row + 3 < end ? row_bytes : 0, aligned);
      }

      const Magnitudes magnitudes[2] = {Magnitudes(pair.block[0]), Magnitudes(pair.block[1])};
      Encoded encoded[2];
      uint32_t factor[2];
      bool serve = true;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float amax = fabsf(__fmul_rn(magnitudes[i].largest(), scale));
        largest = max(largest, __float_as_uint(amax));
        Scale own = rule.block<false>(amax);
        encoded[i].byte = own.byte;
        encoded[i].d = kSums ? rule.factor(own.value) : 0;
        int32_t bits = __shfl_sync(0xffffffffu, entry, (lane & 24) | (own.byte & 7)) + (kCodeBias << 10) -
                       static_cast<int32_t>((own.byte & 0x78) << 7);
        factor[i] = __byte_perm(bits, 0, 0x1010);
        serve &= own.byte >= 8 && bits >= kLeastFactor && bits <= kMostFactor;
      }

      int64_t second = both ? row_bytes : 0;
      if (serve) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          encoded[i].codes = make_uint2(magnitudes[i].encode_eight(0, factor[i]), magnitudes[i].encode_eight(1, factor[i]));
        }
      } else {
        Encoded otherwise[2];
        encode_apart<E4m3>(source, scale, *made, &otherwise[0]);
        encode_apart<E4m3>(source + second, scale, *made, &otherwise[1]);
        encoded[0] = otherwise[0];
        encoded[1] = otherwise[1];
      }

#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (rule.zero) {
          encoded[i] = {make_uint2(0, 0), rule.modelopt ? 0x38u : 0x20u, 0};
        }

        if (!mine || (i == 1 && !both)) {
          continue;
        }

        int64_t out = segment.first_block + (row + i) * row_blocks + column;
        store8(encode.packed + out * kPackedBlock, encoded[i].codes, aligned_out);
        encode.scales[out] = static_cast<unsigned char>(encoded[i].byte);
        if (kSums && !rule.zero) {
          Squares squares;
          if (encoded[i].d >= 0x1p-100f) {
            squares = block_squares([&](int j) { return pair.block[i].weight(j, scale); }, encoded[i].codes,
                                    0.5f * encoded[i].d);
          } else {
            squares_plainly<E4m3>(source + i * second, scale, encoded[i].codes, encoded[i].d, &squares);
          }

          sums.add(squares);
        }
      }
    }
  }

  if constexpr (kSums) {
    if (summed >= 0) {
      sums.flush(&encode.workspace->sums[summed]);
    }
  }

  if (!encode.of_unit) {
    raise(&encode.workspace->largest, largest);
  }

  conclude_last(batch, encode);
}

}  // namespace

cudaError_t launch_encode_strips(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  bool modelopt = encode.recipe == SPARKFP4_MODELOPT;
  auto kernel = encode.with_sums ? (modelopt ? encode_strips_kernel<true, true> : encode_strips_kernel<true, false>)
                                 : (modelopt ? encode_strips_kernel<false, true> : encode_strips_kernel<false, false>);
  int grid;
  cudaError_t error = grid_size(kernel, batch.tiles, &grid);
  return error == cudaSuccess ? launch_after(kernel, grid, kThreads, stream, batch, encode) : error;
}

}  // namespace sparkfp4::cuda
