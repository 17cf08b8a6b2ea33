// A unit in host memory, and where its results go.
#pragma once

#include "enqueue.h"

namespace sparkfp4::cuda {

constexpr int64_t kAlignment = 256;

constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A unit in host memory.
struct HostUnit {
  const sparkfp4_segment *plain;  // or null
  const sparkfp4_quantized_segment *quantized;
  int64_t segment_count;
  const sparkfp4_scheme *scheme;  // of quantized
  int64_t cols;                   // 0: a count is in elements
  int64_t element_bytes;          // of plain
  Source source;

  int64_t rows(int64_t segment) const {
    return plain != nullptr ? plain[segment].count : quantized[segment].rows;
  }

  int64_t row_bytes() const {
    return plain != nullptr ? (cols == 0 ? 1 : cols) * element_bytes : code_row_bytes(scheme->codes, cols);
  }

  const unsigned char *data(int64_t segment) const {
    return static_cast<const unsigned char *>(plain != nullptr ? plain[segment].data : quantized[segment].codes);
  }

  // The rows of scales of so many rows.
  int64_t scale_rows(int64_t rows) const {
    return scheme->block_rows == 0 ? (rows > 0 ? 1 : 0) : (rows + scheme->block_rows - 1) / scheme->block_rows;
  }

  int64_t scale_row_bytes() const {
    return scheme == nullptr ? 0 : static_cast<int64_t>(source.row_scales) * scale_bytes(scheme->scales);
  }

  // What rows of a segment take on the device.
  int64_t part_bytes(int64_t rows) const {
    return aligned(rows * row_bytes()) + (scheme == nullptr ? 0 : aligned(scale_rows(rows) * scale_row_bytes()));
  }
};

// Where results go.
struct HostOutputs {
  int64_t packed_row;  // bytes of a row of packed
  int64_t scales_row;
  unsigned char *packed;
  unsigned char *scales;
  sparkfp4_error_sums *sums;
};

}  // namespace sparkfp4::cuda
