// What a task thread holds on a device: a stream, a ring of pinned pieces, device memory that grows.
#pragma once

#include "device_scope.h"
#include "enqueue.h"
#include "staging.h"

struct sparkfp4_cuda_context {
  int device;
  int64_t piece_bytes;
  int64_t device_limit;
  sparkfp4::cuda::Staging staging;
  unsigned char *memory;
  int64_t memory_bytes;

  // Device memory of at least so many bytes, whose content is lost; SPARKFP4_CUDA_OUT_OF_MEMORY where there is none.
  sparkfp4_cuda_status reserve(int64_t bytes);
};
