// Values of E2M1 codes under a scale as binary32, as the definition in Java has them: one product each, and one NaN.
#pragma once

#include <cstdint>

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kNanBits = 0x7fc00000;

__device__ __forceinline__ float e4m3(uint32_t byte) {
  uint32_t magnitude = byte & 0x7f;
  float value = magnitude == 0x7f ? __uint_as_float(kNanBits) : __uint_as_float(magnitude << 20) * 0x1p120f;
  return byte < 128 ? value : -value;
}

// 2^(byte - 127), of which that of 0 is subnormal.
__device__ __forceinline__ float e8m0(uint32_t byte) {
  uint32_t bits = byte == 0 ? 0x00400000u : byte << 23;
  return __uint_as_float(byte == 0xff ? kNanBits : bits);
}

// The values of four codes, in the low half of the word, as pairs of bfloat16: their bytes are looked up.
__device__ __forceinline__ void e2m1_pairs(uint32_t codes, uint32_t *pairs) {
  uint32_t magnitudes = codes & 0x7777u;
  uint32_t low = __byte_perm(0xc0800000u, 0xc0804000u, magnitudes);
  uint32_t high = __byte_perm(0x3f3f3f00u, 0x40404040u, magnitudes);
  high |= __byte_perm(codes << 4, codes, 0x5140) & 0x80808080u;
  pairs[0] = __byte_perm(low, high, 0x5140);
  pairs[1] = __byte_perm(low, high, 0x7362);
}

// The values of four codes times d.
__device__ __forceinline__ void decode_four(uint32_t codes, float d, float *values) {
  uint32_t pairs[2];
  e2m1_pairs(codes, pairs);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    values[2 * i] = __fmul_rn(__uint_as_float(pairs[i] << 16), d);
    values[2 * i + 1] = __fmul_rn(__uint_as_float(pairs[i] & 0xffff0000u), d);
  }
}

// What a value is stored as: all NaN are one.
__device__ __forceinline__ uint32_t stored(float value) {
  return value == value ? __float_as_uint(value) : kNanBits;
}

// The same of four codes.
__device__ __forceinline__ void stored_four(uint32_t codes, float d, uint32_t *words) {
  float values[4];
  decode_four(codes, d, values);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    words[i] = stored(values[i]);
  }
}

}  // namespace
}  // namespace sparkfp4::cuda
