// Values of codes times a scale, a block at a time.
#pragma once

#include <cstring>

#include "arithmetic.h"
#include "to_bf16.h"

namespace sparkfp4 {
namespace {

constexpr float kCodeValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Whether no product of such a scale is NaN.
inline bool is_finite(float scale) { return scale >= -__FLT_MAX__ && scale <= __FLT_MAX__; }

// Of any scale. Every NaN, that of 0 times infinity too, is the canonical one.
inline void decode_block(const unsigned char *codes, float scale, float *out) {
  for (int i = 0; i < kBlock; i++) {
    float value = kCodeValues[codes[i / 2] >> (4 * (i % 2)) & 0xf] * scale;
    out[i] = value == value ? value : bits_as<float>(uint32_t{0x7fc00000});
  }
}

inline void decode_block_to_bf16(const unsigned char *codes, float scale, unsigned char *out) {
  float values[kBlock];
  decode_block(codes, scale, values);
  for (int i = 0; i < kBlock; i++) {
    uint16_t bits = to_bf16(values[i]).bits;
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

}  // namespace
}  // namespace sparkfp4
