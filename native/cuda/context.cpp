// Contexts, and the words for CUDA's errors.
#include "context.h"

#include <cstdio>
#include <cstdlib>

#ifndef SPARKFP4_VERSION
#error "SPARKFP4_VERSION is not defined"
#endif

namespace sparkfp4::cuda {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kDefaultPiece = 8 * kMegabyte;
constexpr int kLeastCapability = 8;

thread_local char error_text[256];

// Whether the device can be used no more: the error comes again at the next call.
bool is_sticky() {
  return cudaDeviceSynchronize() != cudaSuccess && cudaGetLastError() != cudaSuccess &&
         cudaDeviceSynchronize() != cudaSuccess;
}

}  // namespace

sparkfp4_cuda_status failed(cudaError_t error) {
  std::snprintf(error_text, sizeof error_text, "%s: %s", cudaGetErrorName(error), cudaGetErrorString(error));
  cudaGetLastError();
  switch (error) {
    case cudaErrorMemoryAllocation:
      return SPARKFP4_CUDA_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
      return SPARKFP4_CUDA_NO_DEVICE;
    default:
      return is_sticky() ? SPARKFP4_CUDA_STICKY : SPARKFP4_CUDA_FAILED;
  }
}

cudaError_t Staging::create(int64_t piece_bytes) {
  piece_bytes_ = piece_bytes;
  cudaError_t error = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  for (int i = 0; i < kPieces && error == cudaSuccess; i++) {
    error = cudaEventCreateWithFlags(&done_[i], cudaEventDisableTiming | cudaEventBlockingSync);
    if (error == cudaSuccess) {
      error = cudaHostAlloc(reinterpret_cast<void **>(&pieces_[i]), piece_bytes, cudaHostAllocDefault);
    }
  }

  return error;
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
      std::memcpy(pieces_[piece], source + done, size);
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

using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_context::reserve(int64_t bytes) {
  if (bytes <= memory_bytes) {
    return SPARKFP4_CUDA_OK;
  }

  if (device_limit > 0 && bytes > device_limit) {
    return failed(cudaErrorMemoryAllocation);
  }

  // Freed first: there may be no room for both.
  cudaError_t error = cudaStreamSynchronize(staging.stream());
  if (error == cudaSuccess && memory != nullptr) {
    error = cudaFree(memory);
    memory = nullptr;
    memory_bytes = 0;
  }

  if (error == cudaSuccess) {
    error = cudaMalloc(reinterpret_cast<void **>(&memory), bytes);
  }

  if (error != cudaSuccess) {
    memory = nullptr;
    return failed(error);
  }

  memory_bytes = bytes;
  return SPARKFP4_CUDA_OK;
}

const char *sparkfp4_cuda_version(void) {
  return SPARKFP4_VERSION;
}

int sparkfp4_cuda_device_count(void) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }

  int usable = 0;
  for (int i = 0; i < devices; i++) {
    int major = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i) == cudaSuccess) {
      usable += major >= kLeastCapability;
    }
  }

  return usable;
}

const char *sparkfp4_cuda_error(void) {
  return error_text;
}

sparkfp4_cuda_status sparkfp4_cuda_create(int device, const sparkfp4_cuda_limits *limits,
                                          sparkfp4_cuda_context **context) {
  int64_t piece = limits == nullptr || limits->piece_bytes == 0 ? kDefaultPiece : limits->piece_bytes;
  int64_t most = limits == nullptr ? 0 : limits->device_bytes;
  if (context == nullptr || device < 0 || piece < kMegabyte || piece % kMegabyte != 0 || most < 0) {
    return SPARKFP4_CUDA_INVALID;
  }

  int major = 0;
  cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess && major < kLeastCapability) {
    error = cudaErrorNoKernelImageForDevice;
  }

  int previous = -1;
  if (error == cudaSuccess) {
    error = cudaGetDevice(&previous);
  }

  if (error == cudaSuccess) {
    error = cudaSetDevice(device);
  }

  if (error != cudaSuccess) {
    return failed(error);
  }

  sparkfp4_cuda_context *made = static_cast<sparkfp4_cuda_context *>(std::malloc(sizeof(sparkfp4_cuda_context)));
  if (made == nullptr) {
    error = cudaErrorMemoryAllocation;
  } else {
    *made = {device, piece, most, Staging(), nullptr, 0};
    error = made->staging.create(piece);
  }

  sparkfp4_cuda_status status = error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  if (status == SPARKFP4_CUDA_OK) {
    *context = made;
  } else if (made != nullptr) {
    made->staging.destroy();
    std::free(made);
  }

  cudaSetDevice(previous);
  return status;
}

void sparkfp4_cuda_destroy(sparkfp4_cuda_context *context) {
  if (context == nullptr) {
    return;
  }

  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(context->device);
  context->staging.destroy();
  if (context->memory != nullptr) {
    cudaFree(context->memory);
  }

  cudaSetDevice(previous);
  // What failed here has been said before.
  cudaGetLastError();
  std::free(context);
}
