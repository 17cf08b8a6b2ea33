// Decodes tensors, and looks for scales that no runtime takes.
#include <cstring>

#include "arithmetic.h"
#include "layout_shape.h"
#include "to_bf16.h"

namespace sparkfp4 {
namespace {

// The values of a byte's two codes.
struct Pairs {
  float of[256][2];

  constexpr Pairs() : of() {
    constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
    for (int byte = 0; byte < 256; byte++) {
      of[byte][0] = kValues[byte & 0xf];
      of[byte][1] = kValues[byte >> 4];
    }
  }
};

constexpr Pairs kPairs;

typedef float Floats4 __attribute__((vector_size(16)));

// 16 values of a block. That of 0 times infinity is the canonical NaN too.
void decode_block(const unsigned char *codes, float d, float *out) {
  for (int i = 0; i < kPackedBlock; i += 2) {
    Floats4 values = {kPairs.of[codes[i]][0], kPairs.of[codes[i]][1], kPairs.of[codes[i + 1]][0],
                      kPairs.of[codes[i + 1]][1]};
    values *= d;
    std::memcpy(out + 2 * i, &values, sizeof values);
  }

  if (__builtin_expect(!(d >= -__FLT_MAX__ && d <= __FLT_MAX__), 0)) {
    for (int i = 0; i < kBlock; i++) {
      out[i] = out[i] == out[i] ? out[i] : bits_as<float>(uint32_t{0x7fc00000});
    }
  }
}

void decode_tile(const NVFP4Tensor &view, Dim3 tile, uint32_t word, float global, float *out) {
  const unsigned char *codes = view.quantized_data + 16 * view.tileOffsetInt4(tile);
  for (int group = 0; group < 4; group++) {
    float d = e4m3_value(scale_of_word(word, group)) * global;
    decode_block(codes + kPackedBlock * group, d, out + kBlock * group);
  }
}

void store_bf16(const float *values, unsigned char *out) {
  uint16_t rounded[kNvfp4ElemsPerTile];
  for (int i = 0; i < kNvfp4ElemsPerTile; i++) {
    rounded[i] = to_bf16(values[i]).bits;
  }

  std::memcpy(out, rounded, sizeof rounded);
}

void decode_row(const sparkfp4_tensor &tensor, const NVFP4Tensor &view, int32_t expert, int32_t row,
                sparkfp4_dtype dtype, unsigned char *out) {
  float global = nvfp4TensorScaleAt(tensor.global_scale, expert);
  int64_t tile_bytes = kNvfp4ElemsPerTile * (dtype == SPARKFP4_F32 ? 4 : 2);
  for (int32_t k_tile = 0; k_tile < tensor.k / kNvfp4ElemsPerTile; k_tile++) {
    Dim3 tile = tensor.is_activation ? Dim3{row, k_tile, 0} : Dim3{expert, row, k_tile};
    uint32_t word = tensor.is_activation ? view.readBlockScaleWordLinear(tile) : view.readBlockScaleWord(tile);
    float values[kNvfp4ElemsPerTile];
    decode_tile(view, tile, word, global, values);
    if (dtype == SPARKFP4_F32) {
      std::memcpy(out + k_tile * tile_bytes, values, sizeof values);
    } else {
      store_bf16(values, out + k_tile * tile_bytes);
    }
  }
}

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

sparkfp4_status sparkfp4_decode_tensor(sparkfp4_tier tier, const sparkfp4_tensor *tensor, sparkfp4_dtype dtype,
                                       void *out) {
  if (!valid_tensor(tensor, dtype, out)) {
    return SPARKFP4_INVALID;
  }

  if (kernel(tier) == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  NVFP4Tensor view = view_of(*tensor);
  unsigned char *next = static_cast<unsigned char *>(out);
  for (int64_t expert = 0; expert < tensor->experts; expert++) {
    for (int64_t row = 0; row < tensor->rows; row++) {
      decode_row(*tensor, view, static_cast<int32_t>(expert), static_cast<int32_t>(row), dtype, next);
      next += tensor->k * (dtype == SPARKFP4_F32 ? 4 : 2);
    }
  }

  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_first_above(const void *bytes, int64_t count, int32_t limit, int64_t *index) {
  if (count < 0 || (count > 0 && bytes == nullptr) || limit < 0 || limit > 254 || index == nullptr) {
    return SPARKFP4_INVALID;
  }

  constexpr int64_t kRun = 4096;
  const unsigned char *data = static_cast<const unsigned char *>(bytes);
  for (int64_t start = 0; start < count; start += kRun) {
    int64_t end = count - start < kRun ? count : start + kRun;
    unsigned char largest = 0;
    for (int64_t i = start; i < end; i++) {
      largest = data[i] > largest ? data[i] : largest;
    }

    for (int64_t i = start; largest > limit && i < end; i++) {
      if (data[i] > limit) {
        *index = i;
        return SPARKFP4_OK;
      }
    }
  }

  *index = -1;
  return SPARKFP4_OK;
}
