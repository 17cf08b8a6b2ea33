// How thread blocks walk the tiles of a batch, and where a block's scale is.
#pragma once

#include "blocks.cuh"
#include "batch.h"

namespace sparkfp4::cuda {

__device__ __forceinline__ uint32_t divide(uint32_t n, FastDivisor divisor) {
  return static_cast<uint32_t>(static_cast<uint64_t>(n) * divisor.multiplier >> divisor.shift);
}

// The segment of a tile; tiles of a thread block mostly stay in one or move on to the next.
__device__ __forceinline__ int segment_of(const Batch &batch, uint32_t tile, int segment) {
  while (segment + 1 < batch.count && tile >= batch.segments[segment + 1].first_tile) {
    segment++;
  }

  while (tile < batch.segments[segment].first_tile) {
    segment--;
  }

  return segment;
}

// The scale of a block of codes.
__device__ __forceinline__ float source_scale(const Source &source, const unsigned char *scales, uint32_t block) {
  uint32_t row = divide(block, source.row_blocks);
  uint32_t column = block - row * source.row_blocks.divisor;
  int64_t index = static_cast<int64_t>(divide(row, source.block_rows)) * source.row_scales +
                  divide(column, source.per_scale);
  switch (source.scale_type) {
    case SPARKFP4_SCALE_F32:
      if (is_aligned(scales, 4)) {
        return reinterpret_cast<const float *>(scales)[index];
      }

      return __uint_as_float(load8(scales + 4 * index, false).x);
    case SPARKFP4_SCALE_BF16:
    case SPARKFP4_SCALE_F16: {
      uint32_t bits = is_aligned(scales, 2) ? reinterpret_cast<const uint16_t *>(scales)[index]
                                            : scales[2 * index] | scales[2 * index + 1] << 8;
      return source.scale_type == SPARKFP4_SCALE_BF16 ? low_half<Bf16>(bits) : low_half<F16>(bits);
    }
    default: {
      uint32_t exponent = scales[index];
      return __uint_as_float(exponent == 0 ? 1u << 22 : exponent == 255 ? 0x7fc00000u : exponent << 23);
    }
  }
}

// Waits for the launches before in the stream, whose end a launch need not have waited for; what comes before it may
// run while they end.
__device__ __forceinline__ void wait_for_earlier_launches() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Lets the next launch begin as soon as there is room.
__device__ __forceinline__ void admit_next_launch() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// The greatest of all threads of the block, which all call it.
__device__ __forceinline__ uint32_t largest_of_block(uint32_t value) {
  __shared__ uint32_t warps[32];
  value = __reduce_max_sync(0xffffffffu, value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    warps[threadIdx.x / 32] = value;
  }

  __syncthreads();
  return __reduce_max_sync(0xffffffffu, threadIdx.x % 32 < blockDim.x / 32 ? warps[threadIdx.x % 32] : 0);
}

// Raises *largest to the greatest of all threads of the block, which all call it.
__device__ __forceinline__ void raise(uint32_t *largest, uint32_t value) {
  wait_for_earlier_launches();
  value = largest_of_block(value);
  if (threadIdx.x == 0 && value > *static_cast<volatile uint32_t *>(largest)) {
    atomicMax(largest, value);
  }
}

// What an amax has left in the slots; all threads of the block call it.
__device__ __forceinline__ uint32_t largest_of_unit(const Workspace *workspace) {
  const uint4 *slots = reinterpret_cast<const uint4 *>(workspace->slots);
  uint32_t largest = 0;
#pragma unroll 2
  for (uint32_t i = threadIdx.x; i < kSlots / 4; i += blockDim.x) {
    uint4 four = slots[i];
    largest = max(largest, max(max(four.x, four.y), max(four.z, four.w)));
  }

  return largest_of_block(largest);
}

// The value of a magnitude that Workspace::largest has.
__device__ __forceinline__ float largest_value(const Source &source, uint32_t bits) {
  return source.kind == SPARKFP4_BF16  ? low_half<Bf16>(bits)
         : source.kind == SPARKFP4_F16 ? widen<F16>(static_cast<uint16_t>(bits))
                                       : __uint_as_float(bits);
}

__device__ __forceinline__ uint32_t infinity_bits(const Source &source) {
  return source.kind == SPARKFP4_BF16 ? Bf16::kInfinity : source.kind == SPARKFP4_F16 ? F16::kInfinity : F32::kInfinity;
}

// Whether blocks 2 i and 2 i + 1 have one scale.
__device__ __forceinline__ bool shares_scales(const Source &source) {
  return source.row_blocks.divisor % 2 == 0 && source.per_scale.divisor % 2 == 0;
}

// Whether a launch may begin before the one before it has ended.
bool can_overlap_launches();

// Thread blocks of so many threads, of a kernel, that the current device holds at once.
cudaError_t blocks_at_once(const void *kernel, int threads, int *blocks);

// Launches a kernel that waits_for_earlier_launches() before it touches their results.
template <typename... Parameters, typename... Arguments>
cudaError_t launch_after(void (*kernel)(Parameters...), int grid, int threads, cudaStream_t stream,
                         const Arguments &...arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = threads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = can_overlap_launches() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// Thread blocks share tiles evenly, but do not run equally fast: those of later waves begin where one has ended, as long
// as each has tiles enough to be worth what it begins with.
constexpr int kWaves = 4;
constexpr int64_t kLeastTiles = 16;

// Thread blocks for so many tiles: as many as the device holds at once, times the waves. Those that hold a tile more
// than others are spread over the multiprocessors.
template <typename... Parameters>
cudaError_t grid_size(void (*kernel)(Parameters...), int64_t tiles, int *grid, int threads = kThreads,
                      int waves = kWaves, int64_t least_tiles = kLeastTiles) {
  int most;
  cudaError_t error = blocks_at_once(reinterpret_cast<const void *>(kernel), threads, &most);
  if (error == cudaSuccess && most == 0) {
    return cudaErrorInvalidConfiguration;
  }

  if (error == cudaSuccess) {
    int64_t worthwhile = tiles / (most * least_tiles);
    most *= worthwhile < 1 ? 1 : worthwhile < waves ? static_cast<int>(worthwhile) : waves;
    *grid = tiles == 0 ? 1 : tiles < most ? static_cast<int>(tiles) : most;
  }

  return error;
}

// Launches a kernel over a batch's tiles, which waits_for_earlier_launches() as above.
template <typename Parameter>
cudaError_t launch_tiles(void (*kernel)(Batch, Parameter), const Batch &batch, const Parameter &parameter,
                         cudaStream_t stream, int waves = kWaves) {
  int grid;
  cudaError_t error = grid_size(kernel, batch.tiles, &grid, kThreads, waves);
  return error == cudaSuccess ? launch_after(kernel, grid, kThreads, stream, batch, parameter) : error;
}

}  // namespace sparkfp4::cuda
