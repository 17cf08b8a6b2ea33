// What the kernels of layouts work on. Host and device share it; all pointers are of device memory.
#pragma once

#include <cuda_runtime_api.h>

#include "../src/layout_shape.h"
#include "sparkfp4_cuda_layouts.h"

namespace sparkfp4::cuda {

// A unit and its matrix; what a kernel reads it does not write.
struct LayoutTask {
  RowShape shape;
  unsigned char *members[SPARKFP4_MAX_MEMBERS];
  unsigned char *arranged;
};

struct DecodeTask {
  NVFP4Tensor view;
  bool is_activation;
  int64_t experts;
  int64_t rows;
  int64_t k;
  sparkfp4_dtype dtype;
  unsigned char *out;
};

// Each enqueues one launch, or none where there is nothing to do.
cudaError_t launch_codes(sparkfp4_code_layout layout, bool restores, const LayoutTask &task, cudaStream_t stream);
// exponent: of the factor of MARLIN_S0E5M3, else 0.
cudaError_t launch_scales(sparkfp4_scale_layout layout, bool restores, const LayoutTask &task, int exponent,
                          cudaStream_t stream);
cudaError_t launch_decode(const DecodeTask &task, cudaStream_t stream);

}  // namespace sparkfp4::cuda
