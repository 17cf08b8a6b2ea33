// The encode of BF16, F16 and F32 sources by round to nearest: a thread block a tile, tiles far apart in turn, a thread
// two blocks of it that are apart, so that a warp reads without gaps. While it encodes a block, the next is on its way.
#include "encode.cuh"
#include "encode_codes.h"

namespace sparkfp4::cuda {
namespace {

// Where a thread's blocks of a tile are.
struct Place {
  int segment;
  uint32_t first;                // of the segment; the other is kThreads further on
  int blocks;                    // 0 to 2 of them
  const unsigned char *source;
};

template <typename Type>
__device__ __forceinline__ Place find_place(const Batch &batch, const Encode &encode, uint32_t turn, int segment) {
  if (turn >= batch.tiles) {
    return {segment, 0, 0, nullptr};
  }

  uint32_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
  Place place;
  place.segment = segment_of(batch, tile, segment);
  const DeviceSegment &of = batch.segments[place.segment];
  place.first = (tile - of.first_tile) * kTileBlocks + threadIdx.x;
  place.blocks = place.first + kThreads < of.blocks ? 2 : place.first < of.blocks ? 1 : 0;
  place.source = of.data + static_cast<int64_t>(place.first) * Type::kBlockBytes;
  return place;
}

template <typename Type, bool kSums>
__global__ void __launch_bounds__(kThreads, kSums || Type::kSource == F32::kSource ? 3 : 5)
    encode_kernel(const __grid_constant__ Batch batch, const __grid_constant__ Encode encode) {
  constexpr int kApart = kThreads * Type::kBlockBytes;
  admit_next_launch();
  Place place = find_place<Type>(batch, encode, blockIdx.x, 0);
  Block<Type> next = {};
  if (place.blocks > 0) {
    next.load(place.source, is_aligned(place.source, 16));
  }

  Rule rule;
  const ScaleRule *made = load_rule(batch, encode, &rule);
  if (made == nullptr) {
    return;
  }

  bool aligned_out = is_aligned(encode.packed, 8);
  uint32_t largest = 0;
  ThreadSums sums;
  int summed = -1;
  auto encode_next = [&](const Block<Type> &block, int64_t out, const unsigned char *source) {
    uint32_t bits = block.largest();
    largest = max(largest, bits);
    Encoded encoded = encode_block<Type>(block, source, 1, Block<Type>::value(bits, 1), rule, made->halves);
    if (rule.zero) {
      encoded = {make_uint2(0, 0), rule.modelopt ? 0x38u : 0x20u, 0};
    }

    store8(encode.packed + out * kPackedBlock, encoded.codes, aligned_out);
    encode.scales[out] = static_cast<unsigned char>(encoded.byte);
    if (kSums && !rule.zero) {
      add_squares(block, source, 1, encoded, &sums);
    }
  };
  for (uint32_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    const DeviceSegment &segment = batch.segments[place.segment];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    int64_t out = segment.first_block + place.first;
    Block<Type> block = next;
    if (place.blocks > 1) {
      next.load(place.source + kApart, is_aligned(place.source, 16));
    }

    if (place.blocks > 0) {
      encode_next(block, out, place.source);
    }

    Place behind = find_place<Type>(batch, encode, turn + gridDim.x, place.segment);
    block = next;
    if (behind.blocks > 0) {
      next.load(behind.source, is_aligned(behind.source, 16));
    }

    if (place.blocks > 1) {
      encode_next(block, out + kThreads, place.source + kApart);
    }

    place = behind;
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
  auto kernel = encode.with_sums ? encode_kernel<Type, true> : encode_kernel<Type, false>;
  return launch_tiles(kernel, batch, encode, stream);
}

}  // namespace

cudaError_t launch_encode(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  switch (encode.source.kind) {
    case SPARKFP4_BF16:
      return launch_encode_of<Bf16>(batch, encode, stream);
    case SPARKFP4_F16:
      return launch_encode_of<F16>(batch, encode, stream);
    case SPARKFP4_F32:
      return launch_encode_of<F32>(batch, encode, stream);
    default:
      return launch_encode_codes(batch, encode, stream);
  }
}

}  // namespace sparkfp4::cuda
