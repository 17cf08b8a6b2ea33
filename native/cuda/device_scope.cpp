#include "device_scope.h"

#include <cuda.h>

namespace sparkfp4::cuda {
namespace {

// The driver's functions, which the runtime finds: the library is not linked with the driver and loads without it.
struct Driver {
  decltype(&cuCtxGetCurrent) get_current = nullptr;
  decltype(&cuCtxSetCurrent) set_current = nullptr;
  cudaError_t error;

  Driver() : error(find("cuCtxGetCurrent", &get_current)) {
    if (error == cudaSuccess) {
      error = find("cuCtxSetCurrent", &set_current);
    }
  }

  template <typename Function>
  static cudaError_t find(const char *name, Function *function) {
    constexpr unsigned int kVersion = 12000;
    cudaDriverEntryPointQueryResult found;
    cudaError_t error = cudaGetDriverEntryPointByVersion(name, reinterpret_cast<void **>(function), kVersion,
                                                         cudaEnableDefault, &found);
    return error == cudaSuccess && found != cudaDriverEntryPointSuccess ? cudaErrorInsufficientDriver : error;
  }
};

// Looked up by each thread for itself: a static of the function's would want the C++ runtime's locks.
const Driver &driver() {
  thread_local const Driver driver;
  return driver;
}

}  // namespace

cudaError_t CudaThread::context(void **current) {
  *current = nullptr;
  if (driver().error != cudaSuccess) {
    return driver().error;
  }

  CUcontext context = nullptr;
  if (driver().get_current(&context) != CUDA_SUCCESS) {
    return cudaErrorInitializationError;
  }

  *current = context;
  return cudaSuccess;
}

cudaError_t CudaThread::use(int device) {
  return cudaSetDevice(device);
}

void CudaThread::give_back(void *context) {
  if (driver().error == cudaSuccess) {
    driver().set_current(static_cast<CUcontext>(context));
  }
}

}  // namespace sparkfp4::cuda
