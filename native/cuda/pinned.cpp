// Pinned memory for results, which the device then writes where they are wanted.
#include "context.h"

using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_pin(int device, int64_t bytes, void **memory) {
  if (device < 0 || bytes <= 0 || memory == nullptr) {
    return SPARKFP4_CUDA_INVALID;
  }

  DeviceScope scope(device);
  void *pinned = nullptr;
  cudaError_t error = scope.error();
  if (error == cudaSuccess) {
    // Portable: contexts of other devices may write it too.
    error = cudaHostAlloc(&pinned, static_cast<size_t>(bytes), cudaHostAllocPortable);
  }

  if (error != cudaSuccess) {
    return failed(error);
  }

  *memory = pinned;
  return SPARKFP4_CUDA_OK;
}

void sparkfp4_cuda_unpin(int device, void *memory) {
  if (memory == nullptr) {
    return;
  }

  DeviceScope scope(device);
  if (scope.error() == cudaSuccess) {
    cudaFreeHost(memory);
  }

  // What failed here has been said before.
  cudaGetLastError();
}
