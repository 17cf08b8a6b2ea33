// What the functions of the C interface share: the checks of their arguments.
#pragma once

#include "arithmetic.h"

namespace sparkfp4 {

static inline bool valid(sparkfp4_recipe recipe) {
  return recipe == SPARKFP4_MODELOPT || recipe == SPARKFP4_COMPRESSED_TENSORS;
}

static inline bool valid_scale(float global_scale) {
  return global_scale > 0 && global_scale <= __FLT_MAX__;
}

static inline bool valid(sparkfp4_search search, const float *importance) {
  bool weighted = search == SPARKFP4_WEIGHTED || search == SPARKFP4_WEIGHTED_HESSIAN;
  return search >= SPARKFP4_RTN && search <= SPARKFP4_WEIGHTED_HESSIAN && weighted == (importance != nullptr);
}

static inline bool valid(const sparkfp4_scheme *scheme) {
  return scheme != nullptr && scheme->codes >= SPARKFP4_E4M3 && scheme->codes <= SPARKFP4_E2M1 &&
         scheme->scales >= SPARKFP4_SCALE_F32 && scheme->scales <= SPARKFP4_SCALE_E8M0 && scheme->block_rows >= 0 &&
         scheme->block_cols >= 0 && scheme->block_cols % kBlock == 0;
}

static inline int scale_bytes(sparkfp4_scale_type type) {
  return type == SPARKFP4_SCALE_F32 ? 4 : type == SPARKFP4_SCALE_E8M0 ? 1 : 2;
}

// Bytes of a row of codes, which INT4 keeps in words of eight.
static inline int64_t code_row_bytes(sparkfp4_codes codes, int64_t cols) {
  return codes == SPARKFP4_E4M3 ? cols : codes == SPARKFP4_INT4 ? (cols + 7) / 8 * 4 : (cols + 1) / 2;
}

// Adds the elements of a segment to *total; false where cols is no multiple of a block, or where the bytes would not
// fit, so that no index can overflow.
static inline bool add_elements(int64_t rows, int64_t cols, int64_t *total) {
  int64_t elements;
  return rows >= 0 && cols >= 0 && cols % kBlock == 0 && !__builtin_mul_overflow(rows, cols, &elements) &&
         !__builtin_add_overflow(*total, elements, total) && *total <= INT64_MAX / 4;
}

// All elements of segments that are valid; -1 where cols is out of its range, or there are too many.
static inline int64_t total_elements(const sparkfp4_segment *segments, int64_t segment_count, int64_t cols) {
  int64_t total = 0;
  for (int64_t i = 0; i < segment_count; i++) {
    if (!add_elements(segments[i].count, cols, &total)) {
      return -1;
    }
  }

  return cols < 0 || cols % kBlock != 0 ? -1 : total;
}

// The same of a quantized source, whose segments are looked at too.
static inline int64_t total_elements(const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols) {
  if (segment_count < 0 || (segment_count > 0 && segments == nullptr)) {
    return -1;
  }

  int64_t total = 0;
  for (int64_t i = 0; i < segment_count; i++) {
    int64_t before = total;
    if (!add_elements(segments[i].rows, cols, &total) ||
        (total > before && (segments[i].codes == nullptr || segments[i].scales == nullptr))) {
      return -1;
    }
  }

  return total;
}

// A segment's lanes to its sums, where those are wanted.
static inline void store_sums(ErrorLanes lanes, sparkfp4_error_sums *sums, int64_t segment) {
  if (sums != nullptr) {
    sums[segment].squares = sum_tree(lanes.squares);
    sums[segment].squared_errors = sum_tree(lanes.errors);
  }
}

}  // namespace sparkfp4
