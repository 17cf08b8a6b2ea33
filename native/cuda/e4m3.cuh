// E4M3 codes of numbers: the one place that knows the hardware's conversion.
#pragma once

#include "keys.cuh"

namespace sparkfp4::cuda {

// Nearest even, saturating, the sign of zero kept.
__device__ __forceinline__ uint32_t e4m3_of(float x) {
  constexpr uint32_t kLargest = 0x43e00000;  // 448
  float ignored;
  return narrow<3, -6>(min(magnitude(x), kLargest), &ignored) | (__float_as_uint(x) >> 24 & 0x80);
}

// The even one's in the low byte.
__device__ __forceinline__ uint32_t e4m3_pair(const Pair &x) {
#if __CUDA_ARCH__ >= 890
  uint16_t codes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(codes) : "f"(x.odd), "f"(x.even));
  return codes;
#else
  return e4m3_of(x.even) | e4m3_of(x.odd) << 8;
#endif
}

}  // namespace sparkfp4::cuda
