// What the functions of the C interfaces of keys share, those of CUDA too: the checks of their arguments.
#pragma once

#include "key_kernel.h"
#include "segments.h"

namespace sparkfp4 {

constexpr int kQueryDim = 128;

static inline bool valid(sparkfp4_scale_rule rule) { return rule >= SPARKFP4_CEIL && rule <= SPARKFP4_BEST_OF_TWO; }
static inline bool valid(sparkfp4_dtype dtype) { return dtype >= SPARKFP4_BF16 && dtype <= SPARKFP4_F32; }
static inline bool valid_eps(float eps) { return eps > 0 && eps <= __FLT_MAX__; }
static inline int64_t bytes(sparkfp4_dtype dtype) { return dtype == SPARKFP4_F32 ? 4 : 2; }

// rows * cols elements of whole blocks, whose bytes can be counted.
static inline bool valid_rows(int64_t rows, int64_t cols) {
  int64_t total = 0;
  return cols > 0 && cols % kKeyBlock == 0 && add_elements(rows, cols, &total);
}

static inline bool valid(const sparkfp4_key_form *form) {
  return form != nullptr && form->dim > 0 && form->dim <= kMaxKeyBlocks * kKeyBlock && form->dim % kKeyBlock == 0 &&
         (!form->hadamard || (form->dim & (form->dim - 1)) == 0) && valid(form->rule) &&
         (form->norm_weight == nullptr) == (form->norm_bias == nullptr) &&
         (form->norm_weight == nullptr || valid_eps(form->eps));
}

// Pages of at least page_bytes, and so many slots.
static inline bool valid(const sparkfp4_pages *pages, int64_t token_bytes, const int64_t *slots, int64_t count) {
  int64_t page_bytes;
  int64_t size;
  int64_t capacity;
  return pages != nullptr && count >= 0 && (count == 0 || slots != nullptr) && pages->count >= 0 &&
         pages->tokens > 0 && (pages->count == 0 || pages->data != nullptr) &&
         !__builtin_mul_overflow(pages->tokens, token_bytes, &page_bytes) && pages->stride >= page_bytes &&
         !__builtin_mul_overflow(pages->count, pages->stride, &size) &&
         !__builtin_mul_overflow(pages->count, pages->tokens, &capacity);
}

// Whether slots that can be read are inside of pages.
static inline bool below_end(const int64_t *slots, int64_t count, const sparkfp4_pages *pages) {
  for (int64_t i = 0; i < count; i++) {
    if (slots[i] >= pages->count * pages->tokens) {
      return false;
    }
  }

  return true;
}

static inline bool valid_quantize(int64_t rows, int64_t cols, const void *data, const void *packed,
                                  const void *scales) {
  return valid_rows(rows, cols) && (rows == 0 || (data != nullptr && packed != nullptr && scales != nullptr));
}

static inline bool valid_insert(const sparkfp4_key_form *form, const void *keys, int64_t tokens, const int64_t *slots,
                                const sparkfp4_pages *pages) {
  return valid(form) && valid_rows(tokens, form->dim) &&
         valid(pages, form->dim / 2 + form->dim / kKeyBlock, slots, tokens) && (tokens == 0 || keys != nullptr);
}

static inline bool valid_query(int64_t tokens, int64_t heads, int64_t padded_heads, const void *query,
                               const void *weights, const void *packed, const void *scales, const void *weights_out) {
  int64_t rows = 0;
  return tokens >= 0 && heads >= 0 && padded_heads >= heads && !__builtin_mul_overflow(tokens, padded_heads, &rows) &&
         valid_rows(rows, kQueryDim) && (rows == 0 || (query != nullptr && weights != nullptr && packed != nullptr &&
                                                       scales != nullptr && weights_out != nullptr));
}

static inline bool valid_norm(int64_t rows, int64_t cols, const void *data, const float *weight, float eps,
                              const void *out) {
  return valid_rows(rows, cols) && weight != nullptr && valid_eps(eps) &&
         (rows == 0 || (data != nullptr && out != nullptr));
}

static inline bool valid_entries(const void *rope, int64_t tokens, const int64_t *slots, int64_t slot_count,
                                 const sparkfp4_pages *pages) {
  return slot_count <= tokens && valid(pages, kEntryBytes, slots, slot_count) && (slot_count == 0 || rope != nullptr);
}

}  // namespace sparkfp4
