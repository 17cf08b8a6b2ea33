// Pairs of binary16, and E2M1 codes of products in it.
//
// As e2m1.cuh has it for binary32: a code is a sum of three parts, each of which is rounded as it is added to a number
// so large that units are its last places. Two codes to a byte come by units of 16 for one of them.
#pragma once

#include "blocks.cuh"

namespace sparkfp4::cuda {

// 1536 in both halves: its unit in the last place is 1. 24576, of which it is 16.
constexpr uint32_t kHalfMagic = 0x66006600u;
constexpr uint32_t kHalfMagic16 = 0x76007600u;

__device__ __forceinline__ uint32_t to_half(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// The values of two E4M3 codes, in the low 16 bits.
__device__ __forceinline__ uint32_t e4m3_to_halves(uint32_t codes) {
  uint32_t halves;
#if __CUDA_ARCH__ >= 890
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(codes)));
#else
  // At bit 7 a magnitude, subnormals too, is 2^-8 times its value; NaN would be a number.
  uint32_t bytes = __byte_perm(codes, 0, 0x1404);
  uint32_t scaled = (bytes & 0x80008000u) | (bytes >> 1 & 0x3f803f80u);
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(scaled), "r"(0x5c005c00u));
  halves |= (codes & 0x7f) == 0x7f ? 0x7fffu : 0;
  halves |= (codes & 0x7f00) == 0x7f00 ? 0x7fff0000u : 0;
#endif
  return halves;
}

// Adds to sum, kHalfMagic or kHalfMagic16 and codes so far, the E2M1 codes of quotients 2 m * factor, times kUnit.
template <int kUnit>
__device__ __forceinline__ uint32_t add_codes(uint32_t m, uint32_t factor, uint32_t sum) {
  constexpr uint32_t kOne = kUnit == 1 ? 0x3c003c00u : 0x4c004c00u;
  constexpr uint32_t kTwo = kOne + 0x04000400u;
  constexpr uint32_t kFour = kTwo + 0x04000400u;
  constexpr uint32_t kMinusOne = 0xbc00bc00u;
  constexpr uint32_t kMinusTwo = 0xc000c000u;
  uint32_t part;
  asm("mul.rn.sat.f16x2 %0, %1, %2;" : "=r"(part) : "r"(m), "r"(factor));
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(part), "r"(kFour), "r"(sum));
  asm("fma.rn.sat.f16x2 %0, %1, %2, %3;" : "=r"(part) : "r"(m), "r"(factor), "r"(kMinusOne));
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(part), "r"(kTwo), "r"(sum));
  asm("fma.rn.sat.f16x2 %0, %1, %2, %3;" : "=r"(part) : "r"(m), "r"(factor), "r"(kMinusTwo));
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(part), "r"(kOne), "r"(sum));
  return sum;
}

// A sum of kHalfMagic16 as one of kHalfMagic, exactly.
__device__ __forceinline__ uint32_t from_magic16(uint32_t sum) {
  uint32_t moved;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(moved) : "r"(sum), "r"(0xf5a0f5a0u));
  return moved;
}

}  // namespace sparkfp4::cuda
