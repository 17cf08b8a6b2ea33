// E2M1 codes of E4M3 elements as products in binary16, two at once: e4m3_factor.h.
#pragma once

#include "blocks.cuh"
#include "e4m3_factor.h"
#include "permute.cuh"
#include "rounding.cuh"

namespace sparkfp4::cuda {

__device__ __forceinline__ uint32_t multiply_halves(uint32_t a, uint32_t b) {
  uint32_t product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}

__device__ __forceinline__ uint32_t add_product_of_halves(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

// Bits of first where the mask has ones, of second elsewhere.
__device__ __forceinline__ uint32_t choose(uint32_t mask, uint32_t first, uint32_t second) {
  uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(bits) : "r"(mask), "r"(first), "r"(second));
  return bits;
}

// The factor of d = rule.factor() of a scale from 1 to below 2, for ordinary ones and source scales.
__device__ __forceinline__ Factor find_factor(float source_scale, float d) {
  float inverse = __frcp_rn(d);
  float step = d * approximate_reciprocal(source_scale);
  NearSides sides = kNoNearSides;
#pragma unroll
  for (int midpoint = 1; midpoint <= 7; midpoint += 2) {
    float at = static_cast<float>(midpoint) * step;
    float element = nearest_element(at);
    sides = add_nearest(sides, midpoint, at, element, divide(__fmul_rn(element, source_scale), d, inverse));
  }

  return make_factor(sides, source_scale * inverse);
}

// A block's elements times 2^-8, exactly; each pair is of elements i and i + 4.
class E4m3Halves {
 public:
  __device__ __forceinline__ explicit E4m3Halves(const Block<E4m3> &block) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t first = block.words[2 * i];
      uint32_t last = block.words[2 * i + 1];
      widen(permute(first, last, 0x5140), &pairs_[4 * i], &pairs_[4 * i + 1]);
      widen(permute(first, last, 0x7362), &pairs_[4 * i + 2], &pairs_[4 * i + 3]);
    }
  }

  // The largest |w|, without scale; NaN where there is one.
  __device__ __forceinline__ float largest() const {
    uint32_t max[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      max[i] = larger(pairs_[i], pairs_[i + 4]);
    }

    uint32_t pair = larger(larger(max[0], max[1]), larger(max[2], max[3]));
    float value = fabsf(low_half<F16>(larger(pair, pair >> 16))) * 0x1p8f;
#if __CUDA_ARCH__ >= 890
    return value;
#else
    return value > 448 ? __uint_as_float(0x7fc00000u) : value;
#endif
  }

  // Codes with signs; no quotient is 7 or more.
  template <bool kEven>
  __device__ __forceinline__ uint2 encode(uint32_t factor) const {
    uint32_t both = factor * 0x00010001u;
    return make_uint2(encode_eight<kEven>(0, both), encode_eight<kEven>(1, both));
  }

 private:
  // Of four bytes, elements i, i + 4, i + 1 and i + 5; -0 becomes 0.
  static __device__ __forceinline__ void widen(uint32_t four, uint32_t *first, uint32_t *second) {
#if __CUDA_ARCH__ >= 890
    constexpr uint32_t kTimes = 0x1c001c00;  // 2^-8
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.rn.f16x2.e4m3x2 %0, low; cvt.rn.f16x2.e4m3x2 %1, high; }"
        : "=r"(*first), "=r"(*second)
        : "r"(four));
    *first = add_product_of_halves(*first, kTimes, 0);
    *second = add_product_of_halves(*second, kTimes, 0);
#else
    constexpr uint32_t kOnce = 0x3c003c00;
    uint32_t bits = permute(four, 0, 0x1404);
    *first = add_product_of_halves((bits & 0x80008000u) | (bits >> 1 & 0x3f803f80u), kOnce, 0);
    bits = permute(four, 0, 0x3424);
    *second = add_product_of_halves((bits & 0x80008000u) | (bits >> 1 & 0x3f803f80u), kOnce, 0);
#endif
  }

  // Of magnitudes; the sign is undefined.
  static __device__ __forceinline__ uint32_t larger(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 890
    uint32_t max;
    asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(max) : "r"(a), "r"(b));
    return max;
#else
    return max_pair<F16>(a & 0x7fff7fffu, b & 0x7fff7fffu);
#endif
  }

  template <bool kEven>
  __device__ __forceinline__ uint32_t encode_eight(int half, uint32_t factor) const {
    // 1, but the compiler cannot know it: a sum with a product is done where products are, and not by the units for
    // integers, which have most to do.
    uint32_t one = blockDim.x / kThreads;
    uint32_t products[4];
    uint32_t codes[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      products[i] = multiply_halves(pairs_[4 * half + i], factor);
      // Of odd elements they are bits 13 to 15 then.
      codes[i] = round_products<kEven>(products[i], one) * (i % 2 == 0 ? 1 : 16);
    }

    uint32_t low = choose(0x0fff0fffu, codes[0], codes[1]);
    uint32_t high = choose(0x0fff0fffu, codes[2], codes[3]);
    uint32_t even = permute(products[0], products[2], 0xfbd9);
    uint32_t odd = permute(products[1], products[3], 0xfbd9);
    return choose(0x77777777u, permute(low, high, 0x7351) >> 1, choose(0x0f0f0f0fu, even, odd));
  }

  uint32_t pairs_[8];
};

}  // namespace sparkfp4::cuda
