// Contexts, and the words for CUDA's errors.
#include "context.h"

#include <cstdio>
#include <cstdlib>

#ifndef SPARKFP4_VERSION
#error "SPARKFP4_VERSION is not defined"
#endif

namespace sparkfp4::cuda {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kDefaultPiece = 8 * kMegabyte;
constexpr int kLeastCapability = 8;

thread_local char error_text[256];

// Whether the device can be used no more: the error comes again at the next call. A thread that uses no device is not
// asked, for the question would give it one.
bool is_sticky() {
  void *context;
  return CudaThread::context(&context) == cudaSuccess && context != nullptr &&
         cudaDeviceSynchronize() != cudaSuccess && cudaGetLastError() != cudaSuccess &&
         cudaDeviceSynchronize() != cudaSuccess;
}

}  // namespace

sparkfp4_cuda_status failed(cudaError_t error) {
  std::snprintf(error_text, sizeof error_text, "%s: %s", cudaGetErrorName(error), cudaGetErrorString(error));
  cudaGetLastError();
  switch (error) {
    case cudaErrorMemoryAllocation:
      return SPARKFP4_CUDA_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
      return SPARKFP4_CUDA_NO_DEVICE;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
      return SPARKFP4_CUDA_STICKY;
    default:
      return is_sticky() ? SPARKFP4_CUDA_STICKY : SPARKFP4_CUDA_FAILED;
  }
}

}  // namespace sparkfp4::cuda

using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_context::reserve(int64_t bytes) {
  if (bytes <= memory_bytes) {
    return SPARKFP4_CUDA_OK;
  }

  if (device_limit > 0 && bytes > device_limit) {
    return failed(cudaErrorMemoryAllocation);
  }

  // Freed first: there may be no room for both.
  cudaError_t error = cudaStreamSynchronize(staging.stream());
  if (error == cudaSuccess && memory != nullptr) {
    error = cudaFree(memory);
    memory = nullptr;
    memory_bytes = 0;
  }

  if (error == cudaSuccess) {
    error = cudaMalloc(reinterpret_cast<void **>(&memory), bytes);
  }

  if (error != cudaSuccess) {
    memory = nullptr;
    return failed(error);
  }

  memory_bytes = bytes;
  return SPARKFP4_CUDA_OK;
}

const char *sparkfp4_cuda_version(void) {
  return SPARKFP4_VERSION;
}

int sparkfp4_cuda_device_count(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }

  int usable = 0;
  for (int i = 0; i < devices; i++) {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i) == cudaSuccess) {
      usable += major >= kLeastCapability;
    }
  }

  return usable;
}

const char *sparkfp4_cuda_error(void) {
  return error_text;
}

sparkfp4_cuda_status sparkfp4_cuda_create(int device, const sparkfp4_cuda_limits *limits,
                                          sparkfp4_cuda_context **context) {
  int64_t piece = limits == nullptr || limits->piece_bytes == 0 ? kDefaultPiece : limits->piece_bytes;
  int64_t most = limits == nullptr ? 0 : limits->device_bytes;
  if (context == nullptr || device < 0 || piece < kMegabyte || piece % kMegabyte != 0 || most < 0) {
    return SPARKFP4_CUDA_INVALID;
  }

  int major = 0;
  cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess && major < kLeastCapability) {
    error = cudaErrorNoKernelImageForDevice;
  }

  if (error != cudaSuccess) {
    return failed(error);
  }

  DeviceScope scope(device);
  if (scope.error() != cudaSuccess) {
    return failed(scope.error());
  }

  sparkfp4_cuda_context *made = static_cast<sparkfp4_cuda_context *>(std::malloc(sizeof(sparkfp4_cuda_context)));
  if (made == nullptr) {
    error = cudaErrorMemoryAllocation;
  } else {
    *made = {device, piece, most, Staging(), nullptr, 0};
    error = made->staging.create(piece);
  }

  sparkfp4_cuda_status status = error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  if (status == SPARKFP4_CUDA_OK) {
    *context = made;
  } else if (made != nullptr) {
    made->staging.destroy();
    std::free(made);
  }

  return status;
}

void sparkfp4_cuda_destroy(sparkfp4_cuda_context *context) {
  if (context == nullptr) {
    return;
  }

  DeviceScope scope(context->device);
  if (scope.error() == cudaSuccess) {
    context->staging.destroy();
    if (context->memory != nullptr) {
      cudaFree(context->memory);
    }
  }

  // What failed here has been said before.
  cudaGetLastError();
  std::free(context);
}
