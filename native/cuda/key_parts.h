// Calls of keys over host memory, whose rows are staged to the device by parts.
#pragma once

#include <cstdlib>

#include "../src/key_arguments.h"
#include "context.h"
#include "host_unit.h"
#include "keys.h"

namespace sparkfp4::cuda {

// What a part takes on the device, as long as a row does not take more.
constexpr int64_t kKeyPartBytes = int64_t{64} << 20;
constexpr int64_t kLeastKeyPartBytes = int64_t{1} << 20;

// The caller's rows, or the results', which the parts of a call take in turn.
inline const unsigned char *row_at(const void *data, int64_t row, int64_t row_bytes) {
  return static_cast<const unsigned char *>(data) + row * row_bytes;
}

inline unsigned char *row_at(void *data, int64_t row, int64_t row_bytes) {
  return static_cast<unsigned char *>(data) + row * row_bytes;
}

// The memory of a part, taken piece by piece.
class Arena {
 public:
  explicit Arena(unsigned char *memory) : next_(memory) {}

  template <typename T>
  T *take(int64_t bytes) {
    T *taken = reinterpret_cast<T *>(next_);
    next_ += aligned(bytes);
    return taken;
  }

 private:
  unsigned char *next_;
};

// Memory of the C heap.
class HostBytes {
 public:
  explicit HostBytes(int64_t bytes) : data_(static_cast<unsigned char *>(std::malloc(bytes > 0 ? bytes : 1))) {}
  ~HostBytes() { std::free(data_); }
  HostBytes(const HostBytes &) = delete;
  HostBytes &operator=(const HostBytes &) = delete;
  unsigned char *data() const { return data_; }

 private:
  unsigned char *data_;
};

// A call in parts of rows. An operation has
//   row_bytes()                    what a row takes on the device
//   fixed_bytes()                  and what all rows share
//   result_bytes()                 what a row takes of scratch on the host
//   begin(arena)                   uploads what all rows share; only then
//   run(first, count, arena, scratch, bad)   does rows, up to their results in the caller's memory
//   bad_row(first, found)          the caller's row of one that was found in the part from first on
template <typename Operation>
class KeyParts {
 public:
  KeyParts(sparkfp4_cuda_context *context, Operation &operation) : context_(context), operation_(operation) {}

  // bad: the first bad rows of all.
  sparkfp4_cuda_status run(int64_t rows, sparkfp4_cuda_bad_rows *bad) {
    *bad = {-1, -1, -1};
    DeviceScope scope(context_->device);
    if (scope.error() != cudaSuccess) {
      return failed(scope.error());
    }

    sparkfp4_cuda_status status = SPARKFP4_CUDA_OUT_OF_MEMORY;
    for (int64_t bytes = kKeyPartBytes; bytes >= kLeastKeyPartBytes && status == SPARKFP4_CUDA_OUT_OF_MEMORY; bytes /= 2) {
      int64_t most = bytes / operation_.row_bytes();
      int64_t count = rows < most ? rows : most > 0 ? most : 1;
      status = context_->reserve(operation_.fixed_bytes() + count * operation_.row_bytes() + kSlack);
      if (status == SPARKFP4_CUDA_OK) {
        status = run(rows, count, bad);
        break;
      }
    }

    return status;
  }

 private:
  // Of what is aligned.
  static constexpr int64_t kSlack = 16 * kAlignment;

  sparkfp4_cuda_status run(int64_t rows, int64_t part_rows, sparkfp4_cuda_bad_rows *bad) {
    HostBytes scratch(part_rows * operation_.result_bytes());
    if (scratch.data() == nullptr) {
      return failed(cudaErrorMemoryAllocation);
    }

    Arena fixed(context_->memory);
    sparkfp4_cuda_bad_rows *found = fixed.take<sparkfp4_cuda_bad_rows>(sizeof *found);
    cudaError_t error = operation_.begin(&fixed);
    // Rows that follow a bad one are done for nothing, unless a norm's is told of first.
    for (int64_t first = 0; first < rows && error == cudaSuccess && bad->normalised < 0; first += part_rows) {
      int64_t count = rows - first < part_rows ? rows - first : part_rows;
      Arena arena = fixed;
      sparkfp4_cuda_status status = operation_.run(first, count, arena, scratch.data(), found);
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      sparkfp4_cuda_bad_rows part;
      error = context_->staging.download(&part, reinterpret_cast<unsigned char *>(found), sizeof part);
      if (error == cudaSuccess) {
        bad->normalised = part.normalised < 0 ? -1 : operation_.bad_row(first, part.normalised);
        if (bad->encoded < 0 && part.encoded >= 0) {
          bad->encoded = operation_.bad_row(first, part.encoded);
        }
      }
    }

    return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  }

  sparkfp4_cuda_context *context_;
  Operation &operation_;
};

// Runs all parts.
template <typename Operation>
sparkfp4_cuda_status run_rows(sparkfp4_cuda_context *context, Operation &operation, int64_t rows, int64_t *bad_row) {
  sparkfp4_cuda_bad_rows bad;
  sparkfp4_cuda_status status = KeyParts<Operation>(context, operation).run(rows, &bad);
  int64_t first = bad.normalised >= 0 ? bad.normalised : bad.encoded;
  if (status != SPARKFP4_CUDA_OK || first < 0) {
    return status;
  }

  *bad_row = first;
  return SPARKFP4_CUDA_NON_FINITE;
}

}  // namespace sparkfp4::cuda
