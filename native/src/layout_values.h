// Values of codes times a scale, a block at a time.
#pragma once

#include <cstring>

#include "arithmetic.h"
#include "layout_kernel.h"
#include "to_bf16.h"

namespace sparkfp4 {
namespace {

constexpr float kCodeValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                   -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Bits of E4M3's magnitudes, shifted to binary32's, and what they are then short of.
constexpr uint32_t kE4m3Bias = 0x3c000000;
constexpr int kE4m3Shift = 20;

// The subnormal magnitudes of E4M3.
constexpr float kE4m3Subnormals[8] = {0,       0x1p-9f, 0x2p-9f, 0x3p-9f,
                                      0x4p-9f, 0x5p-9f, 0x6p-9f, 0x7p-9f};

// Whether no product of such a scale is NaN.
inline bool is_finite(float scale) { return scale >= -__FLT_MAX__ && scale <= __FLT_MAX__; }

// By any scales, one by one. Every NaN, that of 0 times infinity too, is the canonical one.
inline float decoded(const unsigned char *codes, int i, float scale) {
  float value = kCodeValues[codes[i / 2] >> (4 * (i % 2)) & 0xf] * scale;
  return value == value ? value : bits_as<float>(uint32_t{0x7fc00000});
}

inline void decode_to_f32(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
  for (int64_t i = 0; i < blocks * kBlock; i++) {
    float value = decoded(codes + i / kBlock * kPackedBlock, static_cast<int>(i % kBlock), scales[i / kBlock]);
    std::memcpy(out + 4 * i, &value, sizeof value);
  }
}

inline void decode_to_bf16(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
  for (int64_t i = 0; i < blocks * kBlock; i++) {
    float value = decoded(codes + i / kBlock * kPackedBlock, static_cast<int>(i % kBlock), scales[i / kBlock]);
    uint16_t bits = to_bf16(value).bits;
    std::memcpy(out + 2 * i, &bits, sizeof bits);
  }
}

// Calls group(codes, scales, blocks, out) for up to kScaleGroup blocks at a time whose scales, found by V, are finite,
// and any(...) of the same for others.
template <typename V, typename Group, typename Any>
__attribute__((always_inline)) inline void each_scale_group(const unsigned char *codes, const unsigned char *scales,
                                                            float global, int64_t blocks, unsigned char *out,
                                                            int block_bytes, const Group &group, const Any &any) {
  for (int64_t first = 0; first < blocks; first += kScaleGroup) {
    int64_t count = blocks - first < kScaleGroup ? blocks - first : kScaleGroup;
    alignas(64) float products[kScaleGroup];
    if (__builtin_expect(V::scale_products(scales + first, global, products), 1)) {
      group(codes + first * kPackedBlock, products, count, out + first * block_bytes);
    } else {
      any(codes + first * kPackedBlock, products, count, out + first * block_bytes);
    }
  }
}

// DecodeFunctions by V, whose own take scales that are all finite.
template <typename V, bool kStreams>
void values_to_f32(const unsigned char *codes, const unsigned char *scales, float global, int64_t blocks,
                   unsigned char *out) {
  each_scale_group<V>(codes, scales, global, blocks, out, 4 * kBlock, V::template finite_to_f32<kStreams>,
                      decode_to_f32);
}

template <typename V, bool kStreams>
void values_to_bf16(const unsigned char *codes, const unsigned char *scales, float global, int64_t blocks,
                    unsigned char *out) {
  each_scale_group<V>(codes, scales, global, blocks, out, 2 * kBlock, V::template finite_to_bf16<kStreams>,
                      decode_to_bf16);
}

}  // namespace
}  // namespace sparkfp4
