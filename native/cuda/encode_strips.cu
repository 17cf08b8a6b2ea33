// The encode of E4M3 by round to nearest where one scale covers many rows and columns, as blocks of 128 x 128 do.
//
// A warp takes a strip: 32 blocks of a row, a lane a block, then the rows below. What depends on a source scale and the
// mantissa of a block's own, of which there are eight, its lanes find once a strip, each for a mantissa: a factor by
// which codes are products or, where one of them has none, thresholds.
#include "e4m3_products.cuh"
#include "encode.cuh"
#include "encode_codes.h"
#include "thresholds.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;

// The source scales for which no weight, and no step of the search for thresholds, leaves the ordinary range.
constexpr float kMostStripScale = 0x1p51f;

// Two blocks of a column, the second of which may be the first again.
struct BlockPair {
  Block<E4m3> block[2];

  __device__ __forceinline__ void load(const unsigned char *source, int64_t apart, bool aligned) {
    block[0].load(source, aligned);
    block[1].load(source + apart, aligned);
  }
};

// A lane's blocks of a strip.
struct Column {
  const unsigned char *source;  // of the first
  unsigned char *packed;
  unsigned char *scales;
  uint32_t row_blocks;
  uint32_t rows;
  bool mine;                    // or another lane's, too, whose results count
  float scale;

  __device__ __forceinline__ int64_t row_bytes() const {
    return static_cast<int64_t>(row_blocks) * E4m3::kBlockBytes;
  }

  // Rows from row on, two at most.
  __device__ __forceinline__ void load(uint32_t row, bool aligned, BlockPair *pair) const {
    pair->load(source + row * row_bytes(), row + 1 < rows ? row_bytes() : 0, aligned);
  }
};

template <bool kSums, bool kEven>
__device__ __forceinline__ void encode_by_products(Column column, BlockPair next, uint32_t factor, const Rule &rule,
                                                   const ScaleRule &made, uint32_t *largest, ThreadSums *sums) {
  float size = fabsf(column.scale);
  for (uint32_t left = column.rows; left > 0; left -= min(left, 2u)) {
    const BlockPair pair = next;
    const E4m3Halves halves[2] = {E4m3Halves(pair.block[0]), E4m3Halves(pair.block[1])};
    int64_t row_bytes = column.row_bytes();
    if (left > 2) {
      next.load(column.source + 2 * row_bytes, left > 3 ? row_bytes : 0, true);
    }

    uint32_t second = left > 1 ? column.row_blocks : 0;
    uint32_t bytes[2];
    uint2 codes[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float amax = halves[i].largest() * size;
      *largest = max(*largest, __float_as_uint(amax));
      bytes[i] = rule.usual_byte(amax);
      codes[i] = halves[i].encode<kEven>(factor_of(__shfl_sync(kAllLanes, factor, bytes[i], 8), bytes[i]));
    }

    if (!is_usual(bytes[0]) || !is_usual(bytes[1])) {
      Encoded otherwise[2];
      encode_apart<E4m3>(column.source, column.scale, made, &otherwise[0]);
      encode_apart<E4m3>(column.source + static_cast<int64_t>(second) * E4m3::kBlockBytes, column.scale, made,
                         &otherwise[1]);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        codes[i] = otherwise[i].codes;
        bytes[i] = otherwise[i].byte;
      }
    }

    if (column.mine) {
      *reinterpret_cast<uint2 *>(column.packed) = codes[0];
      *reinterpret_cast<uint2 *>(column.packed + static_cast<int64_t>(second) * kPackedBlock) = codes[1];
      column.scales[0] = static_cast<unsigned char>(bytes[0]);
      column.scales[second] = static_cast<unsigned char>(bytes[1]);
      if constexpr (kSums) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
          if (i < left) {
            Encoded encoded = {codes[i], bytes[i], rule.factor_plainly(e4m3_value(bytes[i]))};
            const unsigned char *source = column.source + i * row_bytes;
            add_squares(pair.block[i], source, column.scale, encoded, sums);
          }
        }
      }
    }

    column.source += 2 * row_bytes;
    column.packed += 2 * static_cast<int64_t>(column.row_blocks) * kPackedBlock;
    column.scales += 2 * static_cast<int64_t>(column.row_blocks);
  }
}

template <bool kSums>
__device__ __forceinline__ void encode_by_thresholds(Column column, BlockPair next, bool aligned, uint32_t entry,
                                                     const Rule &rule, const ScaleRule &made, uint32_t *largest,
                                                     ThreadSums *sums) {
  bool aligned_out = is_aligned(column.packed, 8);
  for (uint32_t row = 0; row < column.rows; row += 2) {
    const BlockPair pair = next;
    if (row + 2 < column.rows) {
      column.load(row + 2, aligned, &next);
    }

    uint32_t count = min(column.rows - row, 2u);
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
      float amax = Block<E4m3>::value(pair.block[i].largest(), column.scale);
      *largest = max(*largest, __float_as_uint(amax));
      Encoded encoded;
      encoded.byte = rule.usual_byte(amax);
      Thresholds thresholds(__shfl_sync(kAllLanes, entry, encoded.byte, 8), encoded.byte);
      const unsigned char *source = column.source + (row + i) * column.row_bytes();
      if (i < count) {
        if (is_usual(encoded.byte) && thresholds.serve() && !rule.zero) {
          encoded.codes = thresholds.encode(pair.block[i]);
          encoded.d = rule.factor_plainly(e4m3_value(encoded.byte));
        } else {
          Encoded otherwise;
          encode_apart<E4m3>(source, column.scale, made, &otherwise);
          encoded = otherwise;
        }

        if (column.mine) {
          int64_t out = static_cast<int64_t>(row + i) * column.row_blocks;
          store8(column.packed + out * kPackedBlock, encoded.codes, aligned_out);
          column.scales[out] = static_cast<unsigned char>(encoded.byte);
          if (kSums && !rule.zero) {
            add_squares(pair.block[i], source, column.scale, encoded, sums);
          }
        }
      }
    }
  }
}

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
    uint32_t index = (strip - group * row_strips) * 32 + lane;
    uint32_t rows = divide(segment.blocks, encode.source.row_blocks);
    uint32_t row = group * kStripRows;
    if (row >= rows) {
      continue;
    }

    bool mine = index < row_blocks;
    uint32_t first = row * row_blocks + (mine ? index : row_blocks - 1);
    int64_t out = segment.first_block + first;
    Column column = {segment.data + static_cast<int64_t>(first) * E4m3::kBlockBytes,
                     encode.packed + out * kPackedBlock,
                     encode.scales + out,
                     row_blocks,
                     min(rows - row, kStripRows),
                     mine,
                     source_scale(encode.source, segment.scales, first)};
    bool aligned = is_aligned(segment.data, 16);
    BlockPair pair;
    column.load(0, aligned, &pair);
    // While those are on their way. What a lane finds is for scales of mantissa 1 + lane % 8 / 8 under its source scale.
    bool ordinary = rule.ordinary && column.scale >= kLeastSourceScale && column.scale <= kMostStripScale;
    float d = rule.factor(1 + (lane & 7) / 8.0f);
    Factor factor = ordinary ? find_factor(column.scale, d) : Factor{0, false};
    bool products = serves(factor) && !rule.zero && aligned && is_aligned(encode.packed, 8);
    if (!__all_sync(kAllLanes, products)) {
      uint32_t entry = ordinary ? find_thresholds(column.scale, d) : kMostEntry;
      encode_by_thresholds<kSums>(column, pair, aligned, entry, rule, *made, &largest, &sums);
    } else if (__any_sync(kAllLanes, factor.even)) {
      encode_by_products<kSums, true>(column, pair, factor.bits, rule, *made, &largest, &sums);
    } else {
      encode_by_products<kSums, false>(column, pair, factor.bits, rule, *made, &largest, &sums);
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
  return launch_tiles(kernel, batch, encode, stream);
}

}  // namespace sparkfp4::cuda
