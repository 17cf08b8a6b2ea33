// E2M1 codes of quotients: the one place that knows how a device rounds them.
//
// From compute capability 10.0 on a pair is one instruction. Elsewhere a code is a sum of three parts, for the E2M1
// grid is three uniform ones: with h = |w| / (2 d),
//   code = rne(4 sat(h)) + rne(2 sat(h - 1)) + rne(sat(h - 2)), sat clamping to [0, 1].
// Adding a part to 1.5 * 2^23 plus the parts before rounds it to an integer. A part begins where the one before has
// ended, at an even code, so that ties go where E2M1 sends them; and sat is a modifier that costs nothing.
#pragma once

#include <cstdint>

namespace sparkfp4::cuda {

#if defined(__CUDA_ARCH_FAMILY_SPECIFIC__) && __CUDA_ARCH__ >= 1000
#define SPARKFP4_HARDWARE_E2M1
#endif

// The codes of eight elements without their signs, the first in the lowest bits. halves.value(i) is h of the element,
// halves.part(i, k) is sat(h - k).
template <typename Halves>
__device__ __forceinline__ uint32_t encode_eight(const Halves &halves) {
#ifdef SPARKFP4_HARDWARE_E2M1
  uint32_t codes = 0;
#pragma unroll
  for (int i = 0; i < 8; i += 2) {
    float even = 2 * halves.value(i);
    float odd = 2 * halves.value(i + 1);
    uint16_t pair;
    asm("{ .reg .b8 codes; cvt.rn.satfinite.e2m1x2.f32 codes, %2, %1; cvt.u16.u8 %0, codes; }"
        : "=h"(pair)
        : "f"(even), "f"(odd));
    codes |= static_cast<uint32_t>(pair) << (4 * i);
  }

  return codes;
#else
  constexpr float kMagic = 0x1.8p23f;
  // What the bits of kMagic leave in a sum of eight, each shifted by four bits more.
  constexpr uint32_t kBits = 0x4b400000u;
  constexpr uint32_t kLeft = kBits + (kBits << 4) + (kBits << 8);
  uint32_t codes = 0;
#pragma unroll
  for (int i = 7; i >= 0; i--) {
    float sum = __fmaf_rn(halves.part(i, 0), 4.0f, kMagic);
    sum = __fmaf_rn(halves.part(i, 1), 2.0f, sum);
    sum = __fadd_rn(sum, halves.part(i, 2));
    codes = codes * 16 + __float_as_uint(sum);
  }

  return codes - kLeft;
#endif
}

constexpr float kToE2m1 = 0x1p-126f;
constexpr uint32_t kHalfCode = 0x200000;
constexpr float kBelowSeven = 6.9f;  // less what a product may be off by

// Within so many units in the last place a quotient counts as the midpoint, where ties are told.
constexpr uint32_t kTieUnits = 4;

// Half a code added to the bits of |w| / d * kToE2m1, or of w / d * kToE2m1. kTies: so that a quotient near a midpoint
// goes to the even code.
template <bool kTies>
__device__ __forceinline__ uint32_t add_half_code(float quotient) {
  uint32_t bits = __float_as_uint(quotient);
  return kTies ? bits + (bits >> 19 & 2 * kTieUnits) + (kHalfCode - kTieUnits) : bits + kHalfCode;
}

// The codes of eight elements without their signs, the first in the lowest bits; quotient(i) is |w| / d * kToE2m1.
template <bool kTies, typename Quotient>
__device__ __forceinline__ uint32_t encode_eight_by_bits(Quotient quotient) {
  uint32_t codes = 0;
#pragma unroll
  for (int i = 7; i >= 0; i--) {
    // The code to the highest four bits, and from there to the lowest ones.
    codes = __funnelshift_l(add_half_code<kTies>(quotient(i)) * 64, codes, 4);
  }

  return codes;
}

// The same with signs, those of sign(i): no element is -0.
template <bool kTies, typename Quotient, typename Sign>
__device__ __forceinline__ uint32_t encode_eight_by_bits(Quotient quotient, Sign sign) {
  uint32_t codes = 0;
#pragma unroll
  for (int i = 7; i >= 0; i--) {
    uint32_t code = add_half_code<kTies>(quotient(i)) * 64;
    codes = __funnelshift_l((code & 0x7fffffffu) | (__float_as_uint(sign(i)) & 0x80000000u), codes, 4);
  }

  return codes;
}

// The E2M1 value, times kToE2m1, of such a quotient of either sign.
__device__ __forceinline__ float round_by_bits(float quotient) {
  return __uint_as_float(add_half_code<true>(quotient) & 0xffc00000u);
}

// Twice the E2M1 magnitudes of four codes, a byte each; codes has them in its low 16 bits, with any signs.
__device__ __forceinline__ uint32_t twice_magnitudes(uint32_t codes) {
  return __byte_perm(0x03020100u, 0x0c080604u, codes & 0x7777u);
}

// Byte i of bytes, exactly.
__device__ __forceinline__ float byte_value(uint32_t bytes, int i) {
  constexpr float kMagic = 0x1p23f;
  return __fadd_rn(__uint_as_float(__byte_perm(bytes, 0x4b000000u, 0x7440u | i)), -kMagic);
}

}  // namespace sparkfp4::cuda
