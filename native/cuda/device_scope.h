// The device of a call, on a thread whose own device is its caller's business.
#pragma once

#include <cuda_runtime_api.h>

namespace sparkfp4::cuda {

// What CUDA knows of a thread. Of the driver's interface, for the runtime tells a thread without a device from one that
// uses device 0 by no means, and to give such a thread "its" device back would make a context on device 0: half a
// gigabyte of a GPU that belongs to another process, perhaps.
struct CudaThread {
  // The context that the thread uses; null where it has none. Starts nothing.
  static cudaError_t context(void **current);
  // Makes the thread use a device, whose context is made if need be.
  static cudaError_t use(int device);
  // Gives the thread a context() back, null too.
  static void give_back(void *context);
};

// Until the end of the scope the thread uses a device, and then what it used before. No other device is touched.
template <typename Thread>
class BasicDeviceScope {
 public:
  explicit BasicDeviceScope(int device) {
    error_ = Thread::context(&previous_);
    known_ = error_ == cudaSuccess;
    if (known_) {
      error_ = Thread::use(device);
    }
  }

  ~BasicDeviceScope() {
    if (known_) {
      Thread::give_back(previous_);
    }
  }

  BasicDeviceScope(const BasicDeviceScope &) = delete;
  BasicDeviceScope &operator=(const BasicDeviceScope &) = delete;
  cudaError_t error() const { return error_; }

 private:
  void *previous_ = nullptr;
  bool known_;
  cudaError_t error_;
};

using DeviceScope = BasicDeviceScope<CudaThread>;

}  // namespace sparkfp4::cuda
