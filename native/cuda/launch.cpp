// What launches ask of the device, remembered: the runtime takes longer to say it than to launch.
#include "batch.h"

namespace sparkfp4::cuda {
namespace {

struct Known {
  int device;
  const void *kernel;
  int blocks;
};

constexpr int kMaxKnown = 64;
thread_local Known known[kMaxKnown];
thread_local int known_count = 0;

}  // namespace

bool can_overlap_launches() {
  int device;
  int major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

cudaError_t blocks_at_once(const void *kernel, int threads, int *blocks) {
  int device;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) {
    return error;
  }

  for (int i = 0; i < known_count; i++) {
    if (known[i].device == device && known[i].kernel == kernel) {
      *blocks = known[i].blocks;
      return cudaSuccess;
    }
  }

  int processors;
  int per_processor;
  error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, kernel, threads, 0);
  }

  if (error == cudaSuccess) {
    *blocks = processors * per_processor;
    if (known_count < kMaxKnown) {
      known[known_count++] = {device, kernel, *blocks};
    }
  }

  return error;
}

}  // namespace sparkfp4::cuda
