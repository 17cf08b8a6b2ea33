// The largest magnitudes: of elements, of codes under their scales, of E8M0 scales.
#include "rounding.cuh"
#include "walk.cuh"

namespace sparkfp4::cuda {
namespace {

__global__ void begin_kernel(Workspace *workspace, int64_t words, sparkfp4_error_sums *sums, int64_t segments,
                             sparkfp4_cuda_outcome *outcome) {
  admit_next_launch();
  int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = thread; i < words; i += threads) {
    reinterpret_cast<uint64_t *>(workspace)[i] = 0;
  }

  for (int64_t i = thread; sums != nullptr && i < segments; i += threads) {
    sums[i] = {0, 0};
  }

  if (thread == 0) {
    *outcome = {};
  }
}

// Raises the largest magnitude; the last thread block makes the rule of a unit.
__device__ __forceinline__ void conclude_amax(const Encode &encode, uint32_t largest) {
  Workspace *workspace = encode.workspace;
  raise(&workspace->largest, largest);
  if (!encode.of_unit || threadIdx.x >= 32) {
    return;
  }

  uint32_t finished = 0;
  if (threadIdx.x == 0) {
    __threadfence();
    finished = atomicAdd(&workspace->finished, 1);
  }

  if (__shfl_sync(0xffffffffu, finished, 0) != gridDim.x - 1) {
    return;
  }

  __threadfence();
  Rule rule;
  float amax = largest_value(encode.source, *static_cast<volatile uint32_t *>(&workspace->largest));
  rule.fill(encode, amax, threadIdx.x);
  if (threadIdx.x == 0) {
    workspace->rule = rule;
    workspace->finished = 0;
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
__global__ void __launch_bounds__(kThreads) amax_kernel(const __grid_constant__ Batch batch,
                                                        const __grid_constant__ Encode encode) {
  admit_next_launch();
  uint32_t largest = 0;
  int segment_index = 0;
  for (int64_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    int64_t bytes = segment.elements * kBytes;
    int64_t start = (tile - segment.first_tile) * kAmaxTileBytes;
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

  conclude_amax(encode, largest);
}

template <typename Type>
__global__ void __launch_bounds__(kThreads) code_amax_kernel(const __grid_constant__ Batch batch,
                                                             const __grid_constant__ Encode encode) {
  admit_next_launch();
  const Source &source = encode.source;
  bool shared = shares_scales(source);
  uint32_t largest = 0;
  int segment_index = 0;
  for (int64_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    uint32_t blocks = static_cast<uint32_t>(segment.elements / kBlock);
    uint32_t index = static_cast<uint32_t>(tile - segment.first_tile) * kTileBlocks + 2 * threadIdx.x;
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

  conclude_amax(encode, largest);
}

template <typename Kernel>
cudaError_t launch(Kernel kernel, const Batch &batch, const Encode &encode, cudaStream_t stream) {
  int grid;
  cudaError_t error = grid_size(kernel, batch.tiles, &grid);
  return error == cudaSuccess ? launch_after(kernel, grid, kThreads, stream, batch, encode) : error;
}

}  // namespace

cudaError_t launch_begin(Workspace *workspace, int64_t segments, sparkfp4_error_sums *sums,
                         sparkfp4_cuda_outcome *outcome, cudaStream_t stream) {
  int64_t bytes = static_cast<int64_t>(sizeof(Workspace) + (segments > 0 ? segments - 1 : 0) * sizeof(SegmentSums));
  int64_t words = bytes / 8;
  int grid = static_cast<int>(words / kThreads < 64 ? words / kThreads + 1 : 64);
  begin_kernel<<<grid, kThreads, 0, stream>>>(workspace, words, sums, segments, outcome);
  return cudaGetLastError();
}

cudaError_t launch_amax(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  switch (encode.source.kind) {
    case SPARKFP4_BF16:
      return launch(amax_kernel<Bf16, 2>, batch, encode, stream);
    case SPARKFP4_F16:
      return launch(amax_kernel<F16, 2>, batch, encode, stream);
    case SPARKFP4_F32:
      return launch(amax_kernel<F32, 4>, batch, encode, stream);
    case E4m3::kSource:
      return launch(code_amax_kernel<E4m3>, batch, encode, stream);
    case Int4::kSource:
      return launch(code_amax_kernel<Int4>, batch, encode, stream);
    default:
      return launch(code_amax_kernel<E2m1>, batch, encode, stream);
  }
}

cudaError_t launch_exponent(const Batch &batch, Workspace *workspace, cudaStream_t stream) {
  Encode encode = {};
  encode.workspace = workspace;
  return launch(amax_kernel<F32, 1>, batch, encode, stream);
}

}  // namespace sparkfp4::cuda
