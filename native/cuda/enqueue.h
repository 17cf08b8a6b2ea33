// What both faces enqueue: the kernels of an operation over the parts of a unit that lie in device memory.
#pragma once

#include "../src/segments.h"
#include "batch.h"

namespace sparkfp4::cuda {

// Rows of a segment, or elements of one without columns.
struct Part {
  const unsigned char *data;
  const unsigned char *scales;
  int64_t rows;
  int64_t first_row;  // in the segment
  int32_t number;     // of the segment
};

// Any kind of array of parts.
struct Parts {
  const void *array;
  int64_t count;
  Part (*at)(const void *array, int64_t index);
};

// An operation on a unit.
struct Operation {
  Conclusion::Kind kind;
  Encode encode;                 // of all kinds its source, workspace and, where there are some, outputs
  int64_t cols;                  // 0: parts have elements
  int64_t granule;               // a multiple of so many rows begins a part
  int32_t kmax;                  // of kCast
  sparkfp4_error_sums *sums;     // or null
  sparkfp4_cuda_outcome *outcome;
  int64_t segments;              // of the whole unit
  bool resumes;                  // an earlier call has had other parts of the same unit; a copy to the device is between
};

Source plain_source(sparkfp4_dtype dtype, int64_t cols);
Source quantized_source(const sparkfp4_scheme &scheme, int64_t cols);

// That of a dequantization, whose rows may be of any length: row_blocks is of columns that share a scale.
Source dequantize_source(const sparkfp4_scheme &scheme, int64_t cols);

// Rows after which a segment may be cut: at a row of scales, and where lanes and strips begin anew.
int64_t cut_granule(const sparkfp4_scheme *scheme, int64_t cols);

cudaError_t enqueue(const Operation &operation, const Parts &parts, cudaStream_t stream);

// Remembers the error for sparkfp4_cuda_error(), and gives its status.
sparkfp4_cuda_status failed(cudaError_t error);

bool valid(const sparkfp4_cuda_choice *choice, int64_t cols);
bool valid(sparkfp4_dtype dtype, const sparkfp4_segment *segments, int64_t segment_count);
bool valid_dequantize(const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segment, int64_t cols,
                      const void *out);
// Of MXFP4.
bool valid_kmax(int32_t kmax);
float cast_scale(sparkfp4_recipe recipe, int32_t kmax);

inline bool writable(int64_t elements, const void *packed, const void *scales) {
  return elements >= 0 && (elements == 0 || (packed != nullptr && scales != nullptr));
}

inline sparkfp4_search search_of(const sparkfp4_cuda_choice *choice) {
  return choice == nullptr ? SPARKFP4_RTN : choice->search;
}

constexpr sparkfp4_scheme kMxfp4 = {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32};

}  // namespace sparkfp4::cuda
