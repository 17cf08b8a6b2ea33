// Sizes of arranged matrices, and where their rows come from; for the host and for CUDA.
#pragma once

#include "sparkfp4_layouts.h"
#include "sparkfp4_nvfp4_tensor.h"

namespace sparkfp4 {

// What codes and scales of an arrangement have in common: rows of bytes. Bytes of a row count from its first on.
struct RowShape {
  sparkfp4_row_order order;
  int64_t members;
  int64_t rows;              // of a member
  int64_t padded_rows;       // of a member, in the matrix
  int64_t row_bytes;         // of a member's row
  int64_t padded_row_bytes;  // of the matrix's row, whole pieces of the layout
  int64_t matrix_rows;       // in memory, whole tiles of the layout

  int64_t bytes() const { return matrix_rows * padded_row_bytes; }
  bool is_padded() const {
    return members * rows != matrix_rows || row_bytes != padded_row_bytes;
  }
};

// The row of the members, in the order r members + m, whose place in turn is the one of a shuffle.
template <int kBlock, typename Index>
SPARKFP4_HOST_DEVICE Index unshuffled(Index position) {
  Index in_block = position % kBlock;
  return position - in_block + in_block % 8 * (kBlock / 8) + in_block / 8;
}

template <typename Index>
SPARKFP4_HOST_DEVICE Index source_row(sparkfp4_row_order order, Index members, Index padded_rows, Index position,
                                      Index *member) {
  Index in_turn;
  switch (order) {
    case SPARKFP4_CONCATENATED:
      *member = position / padded_rows;
      return position % padded_rows;
    case SPARKFP4_INTERLEAVED_64:
      in_turn = position / 64;
      *member = in_turn % members;
      return in_turn / members * 64 + position % 64;
    case SPARKFP4_TRTLLM_GEN_32:
    case SPARKFP4_TRTLLM_GEN_16:
      in_turn = order == SPARKFP4_TRTLLM_GEN_32 ? unshuffled<32>(position) : unshuffled<16>(position);
      *member = in_turn % members;
      return in_turn / members;
    default:
      *member = 0;
      return position;
  }
}

// The row of a member that is at a row of the matrix; -1 for one of padding.
SPARKFP4_HOST_DEVICE int64_t source_row(const RowShape &shape, int64_t position, int *member) {
  int64_t row;
  *member = 0;
  if (position >= shape.members * shape.padded_rows) {
    return -1;
  }

  // Divisions of 64 bits take several times as long, on a GPU much longer.
  if (shape.matrix_rows <= INT32_MAX) {
    uint32_t of_member;
    row = source_row(shape.order, static_cast<uint32_t>(shape.members), static_cast<uint32_t>(shape.padded_rows),
                     static_cast<uint32_t>(position), &of_member);
    *member = static_cast<int>(of_member);
  } else {
    int64_t of_member;
    row = source_row(shape.order, shape.members, shape.padded_rows, position, &of_member);
    *member = static_cast<int>(of_member);
  }

  return row < shape.rows ? row : -1;
}

// False where the layout does not take the arrangement.
inline bool row_shape(const sparkfp4_arrangement *shape, int64_t tile_rows, int64_t k_of_byte, int64_t tile_k,
                      bool pads_k, RowShape *result) {
  static const int64_t kMultiples[] = {1, 1, 64, 32, 16};
  if (shape == nullptr || shape->order < SPARKFP4_PLAIN || shape->order > SPARKFP4_TRTLLM_GEN_16 ||
      shape->members < 1 || shape->members > (shape->order == SPARKFP4_PLAIN ? 1 : SPARKFP4_MAX_MEMBERS) ||
      shape->rows < 0 || shape->padded_rows < shape->rows || shape->padded_rows % kMultiples[shape->order] != 0 ||
      shape->k < 0 || shape->padded_k < shape->k || shape->k % 16 != 0 || shape->padded_k % 16 != 0 ||
      (!pads_k && shape->padded_k % tile_k != 0)) {
    return false;
  }

  int64_t k = (shape->padded_k + tile_k - 1) / tile_k * tile_k;
  int64_t rows;
  int64_t elements;
  if (__builtin_mul_overflow(shape->members, shape->padded_rows, &rows) || rows > INT64_MAX - tile_rows) {
    return false;
  }

  rows = (rows + tile_rows - 1) / tile_rows * tile_rows;
  if (__builtin_mul_overflow(rows, k, &elements)) {
    return false;
  }

  *result = {shape->order,         shape->members, shape->rows, shape->padded_rows, shape->k / k_of_byte,
             k / k_of_byte, rows};
  return true;
}

inline bool code_shape(sparkfp4_code_layout layout, const sparkfp4_arrangement *shape, RowShape *result) {
  switch (layout) {
    case SPARKFP4_CODES_ROW_MAJOR:
      return row_shape(shape, 1, 2, 16, false, result);
    case SPARKFP4_CODES_BLACKWELL_MOE_N128_K64:
    case SPARKFP4_CODES_BLACKWELL_N128_K64:
      return row_shape(shape, 128, 2, 64, false, result);
    case SPARKFP4_CODES_MARLIN:
      return row_shape(shape, 64, 2, 16, false, result);
    default:
      return false;
  }
}

inline bool scale_shape(sparkfp4_scale_layout layout, const sparkfp4_arrangement *shape, RowShape *result) {
  switch (layout) {
    case SPARKFP4_SCALES_ROW_MAJOR:
      return row_shape(shape, 1, 16, 16, false, result);
    case SPARKFP4_SCALES_ATOM_128X4:
      return row_shape(shape, 128, 16, 64, true, result);
    case SPARKFP4_SCALES_ATOM_8X4:
      return row_shape(shape, 8, 16, 64, true, result);
    case SPARKFP4_SCALES_BLACKWELL_N128_K64:
      return row_shape(shape, 128, 16, 64, false, result);
    case SPARKFP4_SCALES_MARLIN_E4M3:
    case SPARKFP4_SCALES_MARLIN_S0E5M3:
      return row_shape(shape, 64, 16, 16, false, result);
    default:
      return false;
  }
}

// The exponent of a factor that the layout takes; -1 of another.
inline int factor_exponent(sparkfp4_scale_layout layout, float factor) {
  int most = layout == SPARKFP4_SCALES_MARLIN_S0E5M3 ? 17 : 0;
  for (int exponent = 0; exponent <= most; exponent++) {
    if (factor == static_cast<float>(1 << exponent)) {
      return exponent;
    }
  }

  return -1;
}

inline bool valid_members(const RowShape &shape, const void *const *members, const void *arranged) {
  if (members == nullptr || (arranged == nullptr && shape.bytes() > 0)) {
    return false;
  }

  for (int64_t i = 0; i < shape.members; i++) {
    if (members[i] == nullptr && shape.rows * shape.row_bytes > 0) {
      return false;
    }
  }

  return true;
}

inline bool valid_tensor(const sparkfp4_tensor *tensor, sparkfp4_dtype dtype, const void *out) {
  int64_t rows;
  int64_t elements;
  return tensor != nullptr && (dtype == SPARKFP4_F32 || dtype == SPARKFP4_BF16) && tensor->experts >= 0 &&
         tensor->rows >= 0 && tensor->k >= 0 && tensor->k % kNvfp4ElemsPerTile == 0 && tensor->k < INT32_MAX &&
         tensor->rows < INT32_MAX && tensor->experts < INT32_MAX &&
         (!tensor->is_activation || tensor->experts == 1) &&
         !__builtin_mul_overflow(tensor->experts, (tensor->rows + 127) / 128 * 128, &rows) &&
         !__builtin_mul_overflow(rows, 4 * tensor->k, &elements) &&
         (tensor->experts * tensor->rows * tensor->k == 0 ||
          (tensor->codes != nullptr && tensor->scales != nullptr && out != nullptr));
}

inline NVFP4Tensor view_of(const sparkfp4_tensor &tensor) {
  return tensor.is_activation
             ? nvfp4Activations(tensor.k, tensor.codes, tensor.scales, tensor.global_scale)
             : nvfp4Weights(tensor.rows, tensor.k, tensor.codes, tensor.scales, tensor.global_scale);
}

// The scale of a tile's group g, from the word as it is read.
SPARKFP4_HOST_DEVICE uint32_t scale_of_word(uint32_t word, int group) {
  return (nvfp4ExchangedScales(word) >> (8 * group)) & 0xff;
}

}  // namespace sparkfp4
