// What a task thread holds on a device: a stream, a ring of pinned pieces, device memory that grows.
#pragma once

#include "enqueue.h"

namespace sparkfp4::cuda {

constexpr int kPieces = 4;

// The copies of a context, in order on its stream: by pieces of pinned memory, for copies from pageable memory would be
// several times slower and would stop the stream.
class Staging {
 public:
  cudaError_t create(int64_t piece_bytes);
  void destroy();
  cudaStream_t stream() const { return stream_; }

  // Enqueues a copy to the device; the source may change once it returns.
  cudaError_t upload(unsigned char *to, const void *from, int64_t bytes);
  // Copies from the device once all that was enqueued is done.
  cudaError_t download(void *to, const unsigned char *from, int64_t bytes);

 private:
  cudaError_t take(int *piece);

  cudaStream_t stream_ = nullptr;
  int64_t piece_bytes_ = 0;
  unsigned char *pieces_[kPieces] = {};
  cudaEvent_t done_[kPieces] = {};
  int next_ = 0;
};

}  // namespace sparkfp4::cuda

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
