#include "results.h"

#include <cstring>

namespace sparkfp4::cuda {
namespace {

bool is_pinned(const unsigned char *address) {
  cudaPointerAttributes attributes;
  return cudaPointerGetAttributes(&attributes, address) == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

}  // namespace

Results::~Results() {
  if (pending_) {
    cudaStreamSynchronize(staging_.stream());
  }
}

bool Results::is_direct(const void *memory, int64_t bytes) {
  const unsigned char *first = static_cast<const unsigned char *>(memory);
  return bytes > 0 && is_pinned(first) && is_pinned(first + bytes - 1);
}

cudaError_t Results::add(void *to, const unsigned char *from, int64_t bytes) {
  if (count_ < kNotes && bytes <= kNoteBytes - noted_) {
    pending_ = true;
    cudaError_t error =
        cudaMemcpyAsync(staging_.notes() + noted_, from, bytes, cudaMemcpyDeviceToHost, staging_.stream());
    if (error == cudaSuccess) {
      notes_[count_++] = {to, noted_, bytes};
      noted_ += bytes;
    }

    return error;
  }

  if (!is_direct(to, bytes)) {
    return staging_.download(to, from, bytes);
  }

  pending_ = true;
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, staging_.stream());
}

cudaError_t Results::wait() {
  cudaError_t error = staging_.finish();
  pending_ = error != cudaSuccess;
  for (int i = 0; i < count_ && error == cudaSuccess; i++) {
    std::memcpy(notes_[i].to, staging_.notes() + notes_[i].at, notes_[i].bytes);
  }

  count_ = 0;
  noted_ = 0;
  return error;
}

}  // namespace sparkfp4::cuda
