// What the bindings of org.sparkfp4.kernels.CudaBinding share: a call either goes through a context, on host memory, or
// works on memory of the thread's current device.
#pragma once

#include <cuda_runtime_api.h>

#include "jni_arrays.h"
#include "../cuda/enqueue.h"
#include "sparkfp4_cuda.h"

namespace {

constexpr int64_t kAlignment = 16;

constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

constexpr int64_t outcome_bytes() { return aligned(sizeof(sparkfp4_cuda_outcome)); }

constexpr int64_t sums_bytes(int64_t segments) { return aligned(segments * sizeof(sparkfp4_error_sums)); }

// A call on device memory. Its scratch there: the outcome, the sums, the workspace.
class DeviceCall {
 public:
  DeviceCall(jlong scratch, jsize segments, sparkfp4_error_sums *totals)
      : scratch_(reinterpret_cast<char *>(scratch)), segments_(segments), totals_(totals) {}

  sparkfp4_cuda_outcome *outcome() const { return reinterpret_cast<sparkfp4_cuda_outcome *>(scratch_); }
  sparkfp4_error_sums *sums() const {
    return totals_ == nullptr ? nullptr : reinterpret_cast<sparkfp4_error_sums *>(scratch_ + outcome_bytes());
  }
  void *workspace() const { return scratch_ + outcome_bytes() + sums_bytes(segments_); }
  sparkfp4_cuda_stream stream() const { return cudaStreamPerThread; }

  // Waits for the call and brings its results to the host; gives its status.
  int finish(sparkfp4_cuda_status enqueued, sparkfp4_cuda_outcome *found) const {
    if (enqueued != SPARKFP4_CUDA_OK) {
      return enqueued;
    }

    cudaError_t error =
        cudaMemcpyAsync(found, outcome(), sizeof(*found), cudaMemcpyDeviceToHost, cudaStreamPerThread);
    if (error == cudaSuccess && totals_ != nullptr) {
      error = cudaMemcpyAsync(totals_, sums(), segments_ * sizeof(*totals_), cudaMemcpyDeviceToHost,
                              cudaStreamPerThread);
    }

    if (error == cudaSuccess) {
      error = cudaStreamSynchronize(cudaStreamPerThread);
    }

    return error == cudaSuccess ? found->status : sparkfp4::cuda::failed(error);
  }

 private:
  char *scratch_;
  jsize segments_;
  sparkfp4_error_sums *totals_;
};

inline sparkfp4_cuda_context *context_at(jlong address) { return reinterpret_cast<sparkfp4_cuda_context *>(address); }

// A call by its context, or on device memory; gives its status.
template <typename OnHost, typename OnDevice>
int run(jlong context, const DeviceCall &call, sparkfp4_cuda_outcome *found, OnHost on_host, OnDevice on_device) {
  return context != 0 ? static_cast<int>(on_host(context_at(context))) : call.finish(on_device(), found);
}

// A call that encodes: its segments, where its results go, and of each segment the sums, where they are asked for.
template <typename Segment>
class EncodeCall {
 public:
  EncodeCall(JNIEnv *env, jlong scratch, jsize size, jlong packed, jlong scales, jdoubleArray sums)
      : env_(env), size_(size), packed_(packed), scales_(scales), java_sums_(sums), segments_(size), totals_(size),
        device_(scratch, size, this->sums()) {}

  // Of the arrays that segments are in. False where memory ran out.
  template <typename... Arrays>
  bool read(Arrays... arrays) {
    return totals_.data() != nullptr && read_segments(env_, arrays..., size_, segments_.data());
  }

  const Segment *segments() { return segments_.data(); }
  int64_t size() const { return size_; }
  void *packed() const { return reinterpret_cast<void *>(packed_); }
  void *scales() const { return reinterpret_cast<void *>(scales_); }
  sparkfp4_error_sums *sums() { return java_sums_ == nullptr ? nullptr : totals_.data(); }

  // Runs the call, on_device with what the call has there, and tells Java the sums if it came through; gives its status.
  template <typename OnHost, typename OnDevice>
  int run(jlong context, sparkfp4_cuda_outcome *found, OnHost on_host, OnDevice on_device) {
    int status = ::run(context, device_, found, on_host, [&] { return on_device(device_); });
    if (status == SPARKFP4_CUDA_OK) {
      write_sums(env_, totals_.data(), size_, java_sums_);
    }

    return status;
  }

 private:
  JNIEnv *env_;
  jsize size_;
  jlong packed_;
  jlong scales_;
  jdoubleArray java_sums_;
  Scratch<Segment> segments_;
  Scratch<sparkfp4_error_sums> totals_;
  DeviceCall device_;
};

inline sparkfp4_cuda_choice choice_of(jint search, jlong importance) {
  return {static_cast<sparkfp4_search>(search), reinterpret_cast<const float *>(importance)};
}

// The amax of a call that came through, or the position of one that found what is not finite.
inline jint told_amax(JNIEnv *env, int status, const sparkfp4_cuda_outcome &found, jfloatArray value,
                      jlongArray where) {
  if (status == SPARKFP4_CUDA_OK) {
    env->SetFloatArrayRegion(value, 0, 1, &found.amax);
  } else if (status == SPARKFP4_CUDA_NON_FINITE) {
    write_position(env, found.non_finite, where, value);
  }

  return status;
}

// The same of a call that found a number, or none.
inline jint told_number(JNIEnv *env, int status, const sparkfp4_cuda_outcome &found, jlong number, jfloatArray value,
                 jlongArray where) {
  if (status == SPARKFP4_CUDA_OK) {
    env->SetLongArrayRegion(where, 0, 1, &number);
  } else if (status == SPARKFP4_CUDA_NON_FINITE) {
    write_position(env, found.non_finite, where, value);
  }

  return status;
}

}  // namespace
