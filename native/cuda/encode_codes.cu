// The encode of quantized sources by round to nearest: a thread block a tile, tiles far apart in turn, a thread two
// neighbours, which mostly share their scale. While it encodes two blocks, the next two are on their way.
#include "encode_codes.h"

#include "encode.cuh"

namespace sparkfp4::cuda {
namespace {

// Two blocks of a thread, with their scales.
template <typename Type>
struct BlockPair {
  int segment;
  uint32_t first;
  int count;                     // 0 to 2
  Block<Type> block[2];
  float scale[2];

  __device__ __forceinline__ void load(const Batch &batch, const Encode &encode, uint32_t turn, int near_segment,
                                       bool shared) {
    segment = near_segment;
    count = 0;
    if (turn >= batch.tiles) {
      return;
    }

    uint32_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
    segment = segment_of(batch, tile, near_segment);
    const DeviceSegment &of = batch.segments[segment];
    first = (tile - of.first_tile) * kTileBlocks + 2 * threadIdx.x;
    count = first + 1 < of.blocks ? 2 : first < of.blocks ? 1 : 0;
    if (count == 0) {
      return;
    }

    const unsigned char *source = of.data + static_cast<int64_t>(first) * Type::kBlockBytes;
    bool aligned = is_aligned(of.data, Type::kBlockBytes);
    block[0].load(source, aligned);
    block[1].load(source + (count > 1 ? Type::kBlockBytes : 0), aligned);
    scale[0] = source_scale(encode.source, of.scales, first);
    scale[1] = shared || count < 2 ? scale[0] : source_scale(encode.source, of.scales, first + 1);
  }
};

template <typename Type, bool kSums>
__global__ void __launch_bounds__(kThreads, kSums ? 3 : 4)
    encode_codes_kernel(const __grid_constant__ Batch batch, const __grid_constant__ Encode encode) {
  admit_next_launch();
  bool shared = shares_scales(encode.source);
  BlockPair<Type> next;
  next.load(batch, encode, blockIdx.x, 0, shared);
  Rule rule;
  const ScaleRule *made = load_rule(batch, encode, &rule);
  if (made == nullptr) {
    return;
  }

  bool aligned8 = is_aligned(encode.packed, 8);
  bool aligned_out = is_aligned(encode.packed, 16) && is_aligned(encode.scales, 2);
  uint32_t largest = 0;
  PairSums sums;
  int summed = -1;
  for (uint32_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    const BlockPair<Type> pair = next;
    next.load(batch, encode, turn + gridDim.x, pair.segment, shared);
    const DeviceSegment &segment = batch.segments[pair.segment];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    if (pair.count == 0) {
      continue;
    }

    const unsigned char *source = segment.data + static_cast<int64_t>(pair.first) * Type::kBlockBytes;
    Encoded encoded[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      // The second may be the first again.
      const unsigned char *own = source + (i < pair.count ? i * Type::kBlockBytes : 0);
      float amax = Block<Type>::value(pair.block[i].largest(), pair.scale[i]);
      largest = max(largest, __float_as_uint(amax));
      encoded[i] = encode_block<Type>(pair.block[i], own, pair.scale[i], amax, rule, made->halves);
      if (rule.zero) {
        encoded[i] = {make_uint2(0, 0), rule.modelopt ? 0x38u : 0x20u, 0};
      }

      if (kSums && i < pair.count && !rule.zero) {
        add_squares(pair.block[i], source + i * Type::kBlockBytes, pair.scale[i], encoded[i], &sums.sums[i]);
      }
    }

    int64_t out = segment.first_block + pair.first;
    unsigned char *packed = encode.packed + out * kPackedBlock;
    if (aligned_out && pair.count > 1 && out % 2 == 0) {
      *reinterpret_cast<uint4 *>(packed) =
          make_uint4(encoded[0].codes.x, encoded[0].codes.y, encoded[1].codes.x, encoded[1].codes.y);
      *reinterpret_cast<uint16_t *>(encode.scales + out) =
          static_cast<uint16_t>(encoded[0].byte | encoded[1].byte << 8);
    } else {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (i < pair.count) {
          store8(packed + i * kPackedBlock, encoded[i].codes, aligned8);
          encode.scales[out + i] = static_cast<unsigned char>(encoded[i].byte);
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

template <typename Type>
cudaError_t launch_encode_of(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  auto kernel = encode.with_sums ? encode_codes_kernel<Type, true> : encode_codes_kernel<Type, false>;
  return launch_tiles(kernel, batch, encode, stream);
}

}  // namespace

cudaError_t launch_encode_codes(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  if (takes_strips(encode)) {
    return launch_encode_strips(batch, encode, stream);
  }

  if (takes_source_blocks(encode)) {
    return launch_encode_mxfp4(batch, encode, stream);
  }

  switch (encode.source.kind) {
    case E4m3::kSource:
      return launch_encode_of<E4m3>(batch, encode, stream);
    case Int4::kSource:
      return launch_encode_of<Int4>(batch, encode, stream);
    default:
      return launch_encode_of<E2m1>(batch, encode, stream);
  }
}

}  // namespace sparkfp4::cuda
