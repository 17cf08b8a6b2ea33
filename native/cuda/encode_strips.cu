// The encode of E4M3 by round to nearest where one scale covers many rows and columns, as blocks of 128 x 128 do.
//
// A warp takes a strip: 32 blocks of a row, a lane a block, then the rows below. Under one source scale s the code of
// an element is a matter of its magnitude's byte alone: it is how many of seven bytes are no larger. Those depend on d,
// and on its exponent only by so many times eight, for nothing rounds otherwise when s, d and a weight change by powers
// of two. So 32 lanes find them once a strip, for eight mantissas of d and four source scales, by true quotients; and
// four magnitudes are held against a threshold by one addition, which carries into the highest bit of each byte.
#include "encode.cuh"
#include "encode_codes.h"

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kEachByte = 0x01010101u;
constexpr int kCodeBias = 7;         // of E4M3's exponent, which has eight codes
constexpr int kOne = 8 * kCodeBias;  // the code of 1

// Thresholds of a mantissa of d, seen from the first of seven, in bytes: that one plus kEntryBias where d has exponent
// 0; how far behind it the second, third and fourth lie. The others are these eight or sixteen further on.
constexpr int kEntryBias = 64;
constexpr uint32_t kNoEntry = 255;   // beyond all that may be

// The first threshold of a block may be from 8, for subnormals have other distances, to 92: no other is more than 36
// behind it, and they end at 128.
constexpr uint32_t kLeastFirst = 8;
constexpr uint32_t kMostFirst = 92;

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

// The lane's entry: of scales of mantissa 1 + lane % 8 / 8 under the lane's source scale.
__device__ __forceinline__ uint32_t find_entry(const Rule &rule, float source_scale, int lane) {
  if (!rule.ordinary || !(source_scale >= kLeastSourceScale && source_scale <= kMostStripScale)) {
    return kNoEntry;
  }

  float d = rule.factor(1 + (lane & 7) / 8.0f);
  float inverse = __frcp_rn(d);
  int first = threshold(0.25f, false, source_scale, d, inverse);
  int second = threshold(0.75f, true, source_scale, d, inverse);
  int third = threshold(1.25f, false, source_scale, d, inverse);
  int fourth = threshold(1.75f, true, source_scale, d, inverse);
  return static_cast<uint32_t>(min(max(first + kEntryBias, 0), static_cast<int>(kNoEntry))) |
         static_cast<uint32_t>(second - first) << 8 | static_cast<uint32_t>(third - first) << 16 |
         static_cast<uint32_t>(fourth - first) << 24;
}

// A block's magnitudes, elements of even and of odd number apart, a byte each.
struct Magnitudes {
  uint32_t bytes[4];    // even and odd ones of the first eight, of the last
  uint32_t codes[4];    // the same with their signs

  __device__ __forceinline__ explicit Magnitudes(const Block<E4m3> &block) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      codes[i] = __byte_perm(block.words[i & 2], block.words[(i & 2) + 1], i % 2 == 0 ? 0x6420 : 0x7531);
      bytes[i] = codes[i] & 0x7f7f7f7fu;
    }
  }

  // As Block<E4m3>::largest(). Pairs of bytes order as bfloat16s, by their high bytes first, and none is NaN.
  __device__ __forceinline__ uint32_t largest() const {
    uint32_t max[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      max[i] = max_pair<Bf16>(bytes[i], bytes[i] << 8);
    }

    uint32_t pair = max_pair<Bf16>(max_pair<Bf16>(max[0], max[1]), max_pair<Bf16>(max[2], max[3]));
    return max_pair<Bf16>(pair, pair >> 16) >> 4 & 0x7f0;
  }
};

// What is added to magnitudes: 128 less a threshold, in each byte.
struct Addends {
  uint32_t of[7];

  // distance: 128 less the first threshold.
  __device__ __forceinline__ Addends(uint32_t entry, uint32_t distance) {
    of[0] = distance * kEachByte;
    of[1] = of[0] - __byte_perm(entry, 0, 0x1111);
    of[2] = of[0] - __byte_perm(entry, 0, 0x2222);
    of[3] = of[0] - __byte_perm(entry, 0, 0x3333);
    of[4] = of[2] - 8 * kEachByte;
    of[5] = of[3] - 8 * kEachByte;
    of[6] = of[2] - 16 * kEachByte;
  }

  // The E2M1 codes of four elements in the high halves of bytes; the low ones are undefined.
  __device__ __forceinline__ uint32_t encode(uint32_t magnitudes, uint32_t codes) const {
    // Whether thresholds are passed, in bit 7; a threshold is passed only if those before it are.
    uint32_t passed[7];
#pragma unroll
    for (int i = 0; i < 7; i++) {
      passed[i] = magnitudes + of[i];
    }

    uint32_t odd = passed[0] ^ passed[1] ^ passed[2] ^ passed[3] ^ passed[4] ^ passed[5] ^ passed[6];
    uint32_t two = (passed[1] & ~passed[3]) | passed[5];
    uint32_t below = codes & (magnitudes + 0x7f7f7f7fu);
    return (below & 0x80 * kEachByte) | (passed[3] >> 1 & 0x40 * kEachByte) | (two >> 2 & 0x20 * kEachByte) |
           (odd >> 3 & 0x10 * kEachByte);
  }

  __device__ __forceinline__ uint32_t encode_eight(const Magnitudes &magnitudes, int half) const {
    uint32_t even = encode(magnitudes.bytes[2 * half], magnitudes.codes[2 * half]);
    uint32_t odd = encode(magnitudes.bytes[2 * half + 1], magnitudes.codes[2 * half + 1]);
    return (even >> 4 & 0x0f * kEachByte) | (odd & 0xf0 * kEachByte);
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
  const ScaleRule *made = load_rule(batch, encode, &rule);
  if (made == nullptr) {
    return;
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
      uint32_t of_mantissa[2];
      uint32_t distance[2];
      bool serve = true;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        float amax = Block<E4m3>::value(magnitudes[i].largest(), scale);
        largest = max(largest, __float_as_uint(amax));
        Scale own = rule.block<false>(amax);
        encoded[i].byte = own.byte;
        encoded[i].d = rule.factor(own.value);
        of_mantissa[i] = __shfl_sync(0xffffffffu, entry, (lane & 24) | (own.byte & 7));
        distance[i] = 128 + kOne + kEntryBias - (own.byte & 0x78) - (of_mantissa[i] & 0xff);
        serve &= own.byte >= 8 && 128 - kLeastFirst - distance[i] <= kMostFirst - kLeastFirst;
      }

      int64_t second = both ? row_bytes : 0;
      if (serve) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          Addends addends(of_mantissa[i], distance[i]);
          encoded[i].codes = make_uint2(addends.encode_eight(magnitudes[i], 0), addends.encode_eight(magnitudes[i], 1));
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
          add_squares(pair.block[i], source + i * second, scale, encoded[i], &sums);
        }
      }
    }
  }

  if constexpr (kSums) {
    if (summed >= 0) {
      sums.flush(&encode.workspace->sums[summed]);
    }
  }

  conclude_last(batch, encode, largest);
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
