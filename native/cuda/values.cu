// Codes with scales in their order to a payload of binary32: a thread four codes, whose values are 16 bytes, several
// times at once.
#include "code_values.cuh"
#include "layout_pieces.cuh"
#include "values.h"

namespace sparkfp4::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kAhead = 4;
constexpr int kCodes = 4;  // of a thread, each time
constexpr int64_t kMaxGrid = 65535;

// Threads that share a scale.
template <Factor kFactor>
constexpr int kOfBlock = (kFactor == Factor::kPowerOfTwo ? 32 : 16) / kCodes;

template <Factor kFactor>
__device__ __forceinline__ float factor_of(uint32_t scale, float global_scale) {
  switch (kFactor) {
    case Factor::kTimesGlobal:
      return __fmul_rn(e4m3(scale), global_scale);
    case Factor::kOverGlobal:
      return __fdiv_rn(e4m3(scale), global_scale);
    default:
      return e8m0(scale);
  }
}

template <Factor kFactor>
__global__ void __launch_bounds__(kThreads) values_kernel(const __grid_constant__ ValuesTask task) {
  const int64_t pieces = task.blocks * kOfBlock<kFactor>;
  const bool aligned = is_aligned(task.codes, 2);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kAhead) + threadIdx.x; first < pieces;
       first += static_cast<int64_t>(gridDim.x) * (kThreads * kAhead)) {
    uint32_t codes[kAhead];
    uint32_t scales[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; i++) {
      int64_t at = first + i * kThreads;
      if (at < pieces) {
        const unsigned char *from = task.codes + 2 * at;
        codes[i] = aligned ? *reinterpret_cast<const uint16_t *>(from) : from[0] | static_cast<uint32_t>(from[1]) << 8;
        scales[i] = task.scales[at / kOfBlock<kFactor>];
      }
    }

#pragma unroll
    for (int i = 0; i < kAhead; i++) {
      int64_t at = first + i * kThreads;
      if (at < pieces) {
        uint32_t words[4];
        stored_four(codes[i], factor_of<kFactor>(scales[i], task.global_scale), words);
        write16(task.out + 16 * at, {words[0], words[1], words[2], words[3]}, 16);
      }
    }
  }
}

template <Factor kFactor>
cudaError_t launch(const ValuesTask &task, cudaStream_t stream) {
  int64_t grid = (task.blocks * kOfBlock<kFactor> + kThreads * kAhead - 1) / (kThreads * kAhead);
  values_kernel<kFactor><<<static_cast<unsigned>(grid < kMaxGrid ? grid : kMaxGrid), kThreads, 0, stream>>>(task);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_values(const ValuesTask &task, cudaStream_t stream) {
  if (task.blocks == 0) {
    return cudaSuccess;
  }

  switch (task.factor) {
    case Factor::kTimesGlobal:
      return launch<Factor::kTimesGlobal>(task, stream);
    case Factor::kOverGlobal:
      return launch<Factor::kOverGlobal>(task, stream);
    default:
      return launch<Factor::kPowerOfTwo>(task, stream);
  }
}

}  // namespace sparkfp4::cuda
