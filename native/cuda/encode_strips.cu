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

// A lane's column of a strip.
struct Strip {
  int segment;
  uint32_t rows;                 // 0: none
  bool mine;                     // or the last column of its row once more
  uint32_t first;                // block of the segment
  const unsigned char *source;
  float scale;

  __device__ __forceinline__ void find(const Batch &batch, const Encode &encode, uint32_t turn, int near_segment) {
    segment = near_segment;
    rows = 0;
    if (turn >= batch.tiles) {
      return;
    }

    uint32_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
    segment = segment_of(batch, tile, near_segment);
    const DeviceSegment &of = batch.segments[segment];
    uint32_t row_blocks = encode.source.row_blocks.divisor;
    uint32_t row_strips = (row_blocks + 31) / 32;
    uint32_t strip = (tile - of.first_tile) * (kThreads / 32) + threadIdx.x / 32;
    uint32_t group = strip / row_strips;
    uint32_t column = (strip - group * row_strips) * 32 + threadIdx.x % 32;
    uint32_t row = group * kStripRows;
    uint32_t all = divide(of.blocks, encode.source.row_blocks);
    if (row >= all) {
      return;
    }

    rows = min(kStripRows, all - row);
    mine = column < row_blocks;
    first = row * row_blocks + (mine ? column : row_blocks - 1);
    source = of.data + static_cast<int64_t>(first) * E4m3::kBlockBytes;
    scale = source_scale(encode.source, of.scales, first);
  }
};

template <bool kSums, bool kModelopt>
__global__ void __launch_bounds__(kThreads, kSums ? 3 : 4)
    encode_strips_kernel(const __grid_constant__ Batch batch, const __grid_constant__ Encode encode) {
  admit_next_launch();
  Strip strip;
  strip.find(batch, encode, blockIdx.x, 0);
  uint32_t row_blocks = encode.source.row_blocks.divisor;
  int64_t row_bytes = static_cast<int64_t>(row_blocks) * E4m3::kBlockBytes;
  // Two rows ahead, those of the next strip behind the last.
  Block<E4m3> block = {};
  Block<E4m3> next = {};
  auto load_first = [&] {
    if (strip.rows > 0) {
      block.load(strip.source, is_aligned(strip.source, 16));
      next.load(strip.source + (strip.rows > 1 ? row_bytes : 0), is_aligned(strip.source, 16));
    }
  };
  load_first();
  Rule rule;
  const ScaleRule *made = load_rule(encode, &rule);
  if (made == nullptr) {
    return conclude_last(batch, encode);
  }

  rule.modelopt = kModelopt;
  uint32_t lane = threadIdx.x % 32;
  bool aligned_out = is_aligned(encode.packed, 8);
  uint32_t largest = 0;
  ThreadSums sums;
  int summed = -1;
  for (uint32_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    const DeviceSegment &segment = batch.segments[strip.segment];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    Strip behind;
    behind.find(batch, encode, turn + gridDim.x, strip.segment);
    int32_t entry = find_entry(rule, strip.scale, lane);
    int64_t out = segment.first_block + strip.first;
    unsigned char *packed = encode.packed + out * kPackedBlock;
    unsigned char *scales = encode.scales + out;
    const unsigned char *source = strip.source;
#pragma unroll 2
    for (uint32_t left = strip.rows; left > 0; left--) {
      Block<E4m3> second = next;
      const unsigned char *from = left > 2 ? source + 2 * row_bytes
                                           : behind.source + (left == 1 && behind.rows > 1 ? row_bytes : 0);
      if (left > 2 || behind.rows > 0) {
        second.load(from, is_aligned(from, 16));
      }

      const Magnitudes magnitudes(block);
      float amax = fabsf(__fmul_rn(magnitudes.largest(), strip.scale));
      largest = max(largest, __float_as_uint(amax));
      Scale own = rule.block<false>(amax);
      Encoded encoded = {make_uint2(0, 0), own.byte, kSums ? rule.factor(own.value) : 0};
      int32_t bits = __shfl_sync(0xffffffffu, entry, (lane & 24) | (own.byte & 7)) + (kCodeBias << 10) -
                     static_cast<int32_t>((own.byte & 0x78) << 7);
      if (own.byte >= 8 && bits >= kLeastFactor && bits <= kMostFactor && !rule.zero) {
        uint32_t factor = __byte_perm(bits, 0, 0x1010);
        encoded.codes = make_uint2(magnitudes.encode_eight(0, factor), magnitudes.encode_eight(1, factor));
      } else {
        Encoded otherwise;
        encode_apart<E4m3>(source, strip.scale, *made, &otherwise);
        encoded = otherwise;
      }

      if (strip.mine) {
        store8(packed, encoded.codes, aligned_out);
        *scales = static_cast<unsigned char>(encoded.byte);
        if (kSums && !rule.zero) {
          add_squares(block, source, strip.scale, encoded, &sums);
        }
      }

      block = next;
      next = second;
      source += row_bytes;
      packed += row_blocks * kPackedBlock;
      scales += row_blocks;
    }

    bool ahead = strip.rows > 1;
    strip = behind;
    if (!ahead) {
      load_first();
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
