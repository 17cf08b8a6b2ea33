// The copies of a context, in order on its stream: by pieces of pinned memory, for copies from pageable memory would be
// several times slower and would stop the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparkfp4::cuda {

constexpr int kPieces = 4;
constexpr int64_t kNoteBytes = 64 << 10;

class Staging {
 public:
  cudaError_t create(int64_t piece_bytes);
  void destroy();
  cudaStream_t stream() const { return stream_; }
  // kNoteBytes of pinned memory for the small results of a call.
  unsigned char *notes() const { return notes_; }

  // Enqueues a copy to the device; the source may change once it returns.
  cudaError_t upload(unsigned char *to, const void *from, int64_t bytes);
  // Waits for all that was enqueued.
  cudaError_t finish();
  // Copies from the device once all that was enqueued is done.
  cudaError_t download(void *to, const unsigned char *from, int64_t bytes);

 private:
  cudaError_t take(int *piece);

  cudaStream_t stream_ = nullptr;
  int64_t piece_bytes_ = 0;
  unsigned char *pieces_[kPieces] = {};
  cudaEvent_t done_[kPieces] = {};
  int next_ = 0;
  cudaEvent_t finished_ = nullptr;
  unsigned char *notes_ = nullptr;
};

}  // namespace sparkfp4::cuda
