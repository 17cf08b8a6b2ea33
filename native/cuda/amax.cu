// The largest magnitudes: of elements, of codes under their scales, of E8M0 scales.
#include "walk.cuh"

namespace sparkfp4::cuda {
namespace {

// The workspace's sums, its numbers, and results; by all threads of a grid.
__device__ __forceinline__ void begin(Workspace *workspace, int64_t segments, sparkfp4_error_sums *sums,
                                      sparkfp4_cuda_outcome *outcome) {
  int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  int64_t words = (segments > 1 ? segments : 1) * static_cast<int64_t>(sizeof(SegmentSums) / 8);
  for (int64_t i = thread; i < words; i += threads) {
    reinterpret_cast<uint64_t *>(workspace->sums)[i] = 0;
  }

  for (int64_t i = thread; sums != nullptr && i < segments; i += threads) {
    sums[i] = {0, 0};
  }

  if (thread == 0) {
    workspace->largest = 0;
    workspace->finished = 0;
    workspace->requantized = 0;
    *outcome = {};
  }
}

__global__ void begin_kernel(Workspace *workspace, int64_t segments, sparkfp4_error_sums *sums,
                             sparkfp4_cuda_outcome *outcome) {
  // Before the next launch may begin, which reads and writes without waiting for those before this one.
  wait_for_earlier_launches();
  admit_next_launch();
  begin(workspace, segments, sums, outcome);
}

// Leaves a thread block's largest magnitude in its slot; the first batch's fill all slots.
__device__ __forceinline__ void fill_slots(Workspace *workspace, bool first, uint32_t largest) {
  largest = largest_of_block(largest);
  if (threadIdx.x == 0) {
    uint32_t *slot = &workspace->slots[blockIdx.x];
    *slot = first ? largest : max(*slot, largest);
  } else if (first) {
    for (uint32_t i = blockIdx.x + threadIdx.x * gridDim.x; i < kSlots; i += (blockDim.x - 1) * gridDim.x) {
      workspace->slots[i] = 0;
    }
  }
}

// What 16 bytes hold: kBytes is an element's. The sign of a byte counts.
template <typename Type, int kBytes>
__device__ __forceinline__ uint32_t largest_of_vector(uint4 vector) {
  if constexpr (kBytes == 1) {
    uint32_t low = 0;
    uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      low = max(low, max(max(words[i] & 0xff, words[i] >> 8 & 0xff), max(words[i] >> 16 & 0xff, words[i] >> 24)));
    }

    return low;
  } else if constexpr (kBytes == 2) {
    uint32_t pair = max_pair<Type>(max_pair<Type>(vector.x & 0x7fff7fffu, vector.y & 0x7fff7fffu),
                                   max_pair<Type>(vector.z & 0x7fff7fffu, vector.w & 0x7fff7fffu));
    return max(pair & 0xffff, pair >> 16);
  } else {
    return max(max(vector.x & 0x7fffffffu, vector.y & 0x7fffffffu),
               max(vector.z & 0x7fffffffu, vector.w & 0x7fffffffu));
  }
}

template <typename Type, int kBytes>
__device__ __forceinline__ uint32_t magnitude_at(const unsigned char *source) {
  uint32_t bits = source[0];
#pragma unroll
  for (int i = 1; i < kBytes; i++) {
    bits |= static_cast<uint32_t>(source[i]) << 8 * i;
  }

  return kBytes == 1 ? bits : bits & (kBytes == 2 ? 0x7fffu : 0x7fffffffu);
}

// Tiles are kAmaxTileBytes of a segment.
template <typename Type, int kBytes>
__device__ __forceinline__ uint32_t largest_of(const Batch &batch) {
  uint32_t largest = 0;
  int segment_index = 0;
  for (uint32_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    int64_t bytes = segment.elements * kBytes;
    int64_t start = static_cast<int64_t>(tile - segment.first_tile) * kAmaxTileBytes;
    const unsigned char *source = segment.data + start;
    if (bytes - start >= kAmaxTileBytes && is_aligned(source, 16)) {
      uint4 vectors[kAmaxVectors];
#pragma unroll
      for (int i = 0; i < kAmaxVectors; i++) {
        vectors[i] = reinterpret_cast<const uint4 *>(source)[i * kThreads + threadIdx.x];
      }

#pragma unroll
      for (int i = 0; i < kAmaxVectors; i++) {
        largest = max(largest, largest_of_vector<Type, kBytes>(vectors[i]));
      }
    } else {
      int64_t end = min(bytes - start, kAmaxTileBytes);
      for (int64_t i = threadIdx.x * kBytes; i < end; i += kThreads * kBytes) {
        largest = max(largest, magnitude_at<Type, kBytes>(source + i));
      }
    }
  }

  return largest;
}

template <typename Type>
__device__ __forceinline__ uint32_t largest_of_codes(const Batch &batch, const Source &source) {
  bool shared = shares_scales(source);
  uint32_t largest = 0;
  int segment_index = 0;
  for (uint32_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    uint32_t blocks = segment.blocks;
    uint32_t index = (tile - segment.first_tile) * kTileBlocks + 2 * threadIdx.x;
    bool aligned = is_aligned(segment.data, Type::kBlockBytes);
    if (index >= blocks) {
      continue;
    }

    bool both = index + 1 < blocks;
    Block<Type> block[2];
    const unsigned char *from = segment.data + static_cast<int64_t>(index) * Type::kBlockBytes;
    block[0].load(from, aligned);
    block[1].load(both ? from + Type::kBlockBytes : from, aligned);
    float scale = source_scale(source, segment.scales, index);
    float second = shared || !both ? scale : source_scale(source, segment.scales, index + 1);
    largest = max(largest, __float_as_uint(Block<Type>::value(block[0].largest(), scale)));
    largest = max(largest, __float_as_uint(Block<Type>::value(block[1].largest(), second)));
  }

  return largest;
}

template <typename Type>
__global__ void __launch_bounds__(kThreads) amax_kernel(const __grid_constant__ Batch batch,
                                                        const __grid_constant__ Source source,
                                                        const __grid_constant__ Beginning beginning,
                                                        Workspace *workspace) {
  // As begin_kernel does.
  wait_for_earlier_launches();
  admit_next_launch();
  if (beginning.first) {
    begin(workspace, beginning.segments, beginning.sums, beginning.outcome);
  }

  uint32_t largest;
  if constexpr (Type::kCodes) {
    largest = largest_of_codes<Type>(batch, source);
  } else {
    largest = largest_of<Type, sizeof(typename Type::Bits)>(batch);
  }

  fill_slots(workspace, beginning.first, largest);
}

__global__ void __launch_bounds__(kThreads) exponent_kernel(const __grid_constant__ Batch batch,
                                                            Workspace *workspace) {
  admit_next_launch();
  wait_for_earlier_launches();
  raise(&workspace->largest, largest_of<F32, 1>(batch));
}

template <typename Type>
cudaError_t launch_amax_of(const Batch &batch, const Encode &encode, const Beginning &beginning, cudaStream_t stream) {
  auto kernel = amax_kernel<Type>;
  int grid;
  cudaError_t error = grid_size(kernel, batch.tiles, &grid, kThreads, 1);
  grid = grid < kSlots ? grid : kSlots;
  return error == cudaSuccess
             ? launch_after(kernel, grid, kThreads, stream, batch, encode.source, beginning, encode.workspace)
             : error;
}

}  // namespace

cudaError_t launch_begin(Workspace *workspace, int64_t segments, sparkfp4_error_sums *sums,
                         sparkfp4_cuda_outcome *outcome, cudaStream_t stream) {
  int64_t words = segments * static_cast<int64_t>(sizeof(SegmentSums) / 8);
  int grid = static_cast<int>(words / kThreads < 64 ? words / kThreads + 1 : 64);
  return launch_after(begin_kernel, grid, kThreads, stream, workspace, segments, sums, outcome);
}

cudaError_t launch_amax(const Batch &batch, const Encode &encode, const Beginning &beginning, cudaStream_t stream) {
  switch (encode.source.kind) {
    case SPARKFP4_BF16:
      return launch_amax_of<Bf16>(batch, encode, beginning, stream);
    case SPARKFP4_F16:
      return launch_amax_of<F16>(batch, encode, beginning, stream);
    case SPARKFP4_F32:
      return launch_amax_of<F32>(batch, encode, beginning, stream);
    case E4m3::kSource:
      return launch_amax_of<E4m3>(batch, encode, beginning, stream);
    case Int4::kSource:
      return launch_amax_of<Int4>(batch, encode, beginning, stream);
    default:
      return launch_amax_of<E2m1>(batch, encode, beginning, stream);
  }
}

cudaError_t launch_exponent(const Batch &batch, Workspace *workspace, cudaStream_t stream) {
  return launch_tiles(exponent_kernel, batch, workspace, stream, 1);
}

}  // namespace sparkfp4::cuda
