#include "staging.h"

#include <cstring>

#include "copy_to_pinned.h"

namespace sparkfp4::cuda {

cudaError_t Staging::create(int64_t piece_bytes) {
  piece_bytes_ = piece_bytes;
  constexpr unsigned int kWaiting = cudaEventDisableTiming | cudaEventBlockingSync;
  cudaError_t error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  for (int i = 0; i < kPieces && error == cudaSuccess; i++) {
    error = cudaEventCreateWithFlags(&done_[i], kWaiting);
    if (error == cudaSuccess) {
      error = cudaHostAlloc(reinterpret_cast<void **>(&pieces_[i]), piece_bytes, cudaHostAllocDefault);
    }
  }

  if (error == cudaSuccess) {
    error = cudaEventCreateWithFlags(&finished_, kWaiting);
  }

  return error == cudaSuccess
             ? cudaHostAlloc(reinterpret_cast<void **>(&notes_), kNoteBytes, cudaHostAllocDefault)
             : error;
}

void Staging::destroy() {
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_);
  }

  for (int i = 0; i < kPieces; i++) {
    if (pieces_[i] != nullptr) {
      cudaFreeHost(pieces_[i]);
    }

    if (done_[i] != nullptr) {
      cudaEventDestroy(done_[i]);
    }
  }

  if (notes_ != nullptr) {
    cudaFreeHost(notes_);
  }

  if (finished_ != nullptr) {
    cudaEventDestroy(finished_);
  }

  if (stream_ != nullptr) {
    cudaStreamDestroy(stream_);
  }
}

// The next piece, once its last copy is done.
cudaError_t Staging::take(int *piece) {
  *piece = next_;
  next_ = (next_ + 1) % kPieces;
  return cudaEventSynchronize(done_[*piece]);
}

cudaError_t Staging::upload(unsigned char *to, const void *from, int64_t bytes) {
  const unsigned char *source = static_cast<const unsigned char *>(from);
  for (int64_t done = 0; done < bytes;) {
    int64_t size = bytes - done < piece_bytes_ ? bytes - done : piece_bytes_;
    int piece;
    cudaError_t error = take(&piece);
    if (error == cudaSuccess) {
      copy_to_pinned(pieces_[piece], source + done, size);
      error = cudaMemcpyAsync(to + done, pieces_[piece], size, cudaMemcpyHostToDevice, stream_);
    }

    if (error == cudaSuccess) {
      error = cudaEventRecord(done_[piece], stream_);
    }

    if (error != cudaSuccess) {
      return error;
    }

    done += size;
  }

  return cudaSuccess;
}

cudaError_t Staging::finish() {
  cudaError_t error = cudaEventRecord(finished_, stream_);
  return error == cudaSuccess ? cudaEventSynchronize(finished_) : error;
}

cudaError_t Staging::download(void *to, const unsigned char *from, int64_t bytes) {
  unsigned char *out = static_cast<unsigned char *>(to);
  int pieces[kPieces];
  int64_t started = 0;
  int64_t copied = 0;
  for (int64_t turn = 0; copied < bytes; turn++) {
    // The copies of the next pieces run while one is taken from pinned memory.
    while (started < bytes && started - copied < kPieces * piece_bytes_) {
      int64_t size = bytes - started < piece_bytes_ ? bytes - started : piece_bytes_;
      int *piece = &pieces[started / piece_bytes_ % kPieces];
      cudaError_t error = take(piece);
      if (error == cudaSuccess) {
        error = cudaMemcpyAsync(pieces_[*piece], from + started, size, cudaMemcpyDeviceToHost, stream_);
      }

      if (error == cudaSuccess) {
        error = cudaEventRecord(done_[*piece], stream_);
      }

      if (error != cudaSuccess) {
        return error;
      }

      started += size;
    }

    int64_t size = bytes - copied < piece_bytes_ ? bytes - copied : piece_bytes_;
    int piece = pieces[turn % kPieces];
    cudaError_t error = cudaEventSynchronize(done_[piece]);
    if (error != cudaSuccess) {
      return error;
    }

    std::memcpy(out + copied, pieces_[piece], size);
    copied += size;
  }

  return cudaSuccess;
}

}  // namespace sparkfp4::cuda
