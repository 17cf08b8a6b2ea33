// RMSNorm of rows in host memory, an operation of KeyParts; a part of that of latents too.
#pragma once

#include "key_parts.h"

namespace sparkfp4::cuda {

struct Norm {
  sparkfp4_cuda_context *context;
  sparkfp4_dtype dtype;
  const void *data;
  int64_t cols;
  const float *weight;
  float eps;
  void *out;
  float *weight_on_device = nullptr;

  int64_t bad_row(int64_t first, int64_t found) const { return first + found; }
  int64_t source_bytes() const { return cols * bytes(dtype); }
  int64_t weight_bytes() const { return cols * static_cast<int64_t>(sizeof(float)); }
  int64_t row_bytes() const { return 2 * source_bytes(); }
  int64_t fixed_bytes() const { return aligned(weight_bytes()); }
  int64_t result_bytes() const { return 0; }

  cudaError_t begin(Arena *arena) {
    weight_on_device = arena->take<float>(weight_bytes());
    return context->staging.upload(reinterpret_cast<unsigned char *>(weight_on_device), weight, weight_bytes());
  }

  sparkfp4_cuda_status run(int64_t first, int64_t count, Arena arena, unsigned char *, sparkfp4_cuda_bad_rows *bad) {
    Staging &staging = context->staging;
    unsigned char *source = arena.take<unsigned char>(count * source_bytes());
    unsigned char *normalised = arena.take<unsigned char>(count * source_bytes());
    cudaError_t error = staging.upload(source, row_at(data, first, source_bytes()), count * source_bytes());
    if (error == cudaSuccess) {
      sparkfp4_cuda_status status = sparkfp4_cuda_enqueue_rms_norm(dtype, source, count, cols, weight_on_device, eps,
                                                                   normalised, bad, staging.stream());
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      error = staging.download(row_at(out, first, source_bytes()), normalised, count * source_bytes());
    }

    return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  }
};

}  // namespace sparkfp4::cuda
