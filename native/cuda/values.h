// What the kernels of payloads work on. Host and device share it; all pointers are of device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparkfp4::cuda {

// How the factor d of a block follows from its scale byte and the global scale.
enum class Factor { kTimesGlobal, kOverGlobal, kPowerOfTwo };

// Blocks of codes, one after another, with a scale byte each.
struct ValuesTask {
  Factor factor;
  const unsigned char *codes;
  const unsigned char *scales;
  int64_t blocks;
  float global_scale;  // of NVFP4
  unsigned char *out;
};

// Enqueues one launch, or none where there is nothing to do.
cudaError_t launch_values(const ValuesTask &task, cudaStream_t stream);

}  // namespace sparkfp4::cuda
