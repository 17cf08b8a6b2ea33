// A block's scale and what its elements are divided by, without a divide where that gives the same bits.
#pragma once

#include "batch.h"
#include "scale.h"

namespace sparkfp4::cuda {

// RN(x / divisor), given RN(1 / divisor): each step corrects the quotient by its exact remainder, and the second gives
// the nearest one (Markstein). For operands and quotients well within the normal range.
__device__ __forceinline__ float divide(float x, float divisor, float reciprocal) {
  float quotient = __fmul_rn(x, reciprocal);
  quotient = __fmaf_rn(__fmaf_rn(-quotient, divisor, x), reciprocal, quotient);
  return __fmaf_rn(__fmaf_rn(-quotient, divisor, x), reciprocal, quotient);
}

// 1 / x to 1 ulp.
__device__ __forceinline__ float approximate_reciprocal(float x) {
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(x));
  return reciprocal;
}

struct Scale {
  uint32_t byte;
  float value;
};

// 0 <= x <= 448 to E4M3.
__device__ __forceinline__ Scale to_e4m3(float x) {
#if __CUDA_ARCH__ >= 890
  uint16_t byte;
  uint32_t halves;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(byte) : "f"(0.0f), "f"(x));
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(byte));
  float value;
  asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(value) : "r"(halves));
  return {byte, value};
#else
  float value = round_to_e4m3(x);
  return {e4m3_byte(value), value};
#endif
}

// 0 <= x to E4M3's byte; NaN to any above 448's or to that.
__device__ __forceinline__ uint32_t e4m3_byte_saturated(float x) {
#if __CUDA_ARCH__ >= 890
  uint16_t byte;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(byte) : "f"(0.0f), "f"(x));
  return byte;
#else
  return to_e4m3(fminf(x, 448.0f)).byte;
#endif
}

// Scales of blocks that are neither subnormal nor, perhaps, more than E4M3 has.
__device__ __forceinline__ bool is_usual(uint32_t byte) {
  constexpr uint32_t kLeastByte = 8;
  constexpr uint32_t kMostByte = 125;
  return byte - kLeastByte <= kMostByte - kLeastByte;
}

// The blocks that the shortcuts are for: zero ones, and those whose largest |w| is between these.
constexpr uint32_t kLeastAmax = (127u - 80) << 23;
constexpr uint32_t kMostAmax = (127u + 60) << 23;

__device__ __forceinline__ bool is_ordinary(float amax) {
  uint32_t bits = __float_as_uint(amax);
  return bits == 0 || bits - kLeastAmax <= kMostAmax - kLeastAmax;
}

// Whether a value of kFreeBits fewer mantissa bits than binary32 may be so near a midpoint of the E2M1 grid of step u
// that an error of a few ulps in its quotient moves its code. margin is in ulps.
template <int kFreeBits>
__device__ __forceinline__ bool has_near_midpoint(float u, uint32_t margin) {
  uint32_t nearest = 0xffffffffu;
#pragma unroll
  for (int m = 1; m <= 7; m += 2) {
    // 2.5, 3.5 and 5 are doubles of 1.25 and 1.75.
    uint32_t bits = __float_as_uint(__fmul_rn(u, static_cast<float>(m)));
    nearest = min(nearest, (bits + margin) << (32 - kFreeBits));
  }

  return nearest <= margin << (33 - kFreeBits);
}

// The rule with what it does.
//
// Of bf16 and f16 a quotient can be a product. Elements have few mantissa bits, so that at most one lies within some
// ulps of a midpoint times d, and only its code can be wrong; whether it has to be above or below is found by a
// division, and the inverse is then moved 2^-20 to that side, which moves no other code. All d of one E4M3 mantissa are
// alike. Where that takes both sides, quotients are divided; but in a search, which has all mantissas in every block,
// those that are ties are rounded as ties.
// Such elements are no accident: 2688 and 1536 have a factor of 3, amax / 2688 * 1.5 * 7 / 4 has as few bits as amax.
struct Rule : ScaleRule {
  // That of a unit, by a warp.
  __device__ void fill(const Encode &encode, float amax, int lane) {
    static_cast<ScaleRule &>(*this) = scale_rule(encode, amax);
    int bits = free_bits(encode);
    bool searched = encode.search != SPARKFP4_RTN;
    float d = factor_of(*this, 1 + (lane & 7) / 8.0f);
    int side = side_of_midpoint(d, 2 * (lane / 8) + 1, bits, searched);
    Sides sides;
    sides.ups = __ballot_sync(0xffffffffu, side > 0);
    sides.downs = __ballot_sync(0xffffffffu, side < 0);
    sides.ties = __ballot_sync(0xffffffffu, side == 2 || side == -2);
    set_halves(this, sides, bits, searched);
  }

  // As block_scale(), for ordinary blocks and scales; which: 0 for 6, 1 for 4.
  template <bool kBf16>
  __device__ __forceinline__ Scale block(float amax, int which = 0) const {
    float ratio = divide(amax, by_largest[which], by_largest_inverse[which]);
    if (modelopt) {
      Scale scale = to_e4m3(fminf(fmaxf(ratio, 0x1p-9f), 448.0f));
      return ratio == 0 ? Scale{0x38, 1.0f} : scale;
    }

    ratio = __fmul_rn(global_scale, kBf16 ? round_to_bf16(ratio) : ratio);
    Scale scale = to_e4m3(fminf(ratio, 448.0f));
    return scale.byte == 0 ? Scale{0x20, 0.125f} : scale;
  }

  // The byte of block<false>()'s scale where that is from 2^-6 to below 448; elsewhere another that is not.
  __device__ __forceinline__ uint32_t usual_byte(float amax) const {
    float ratio = divide(amax, by_largest[0], by_largest_inverse[0]);
    if (modelopt) {
      return ratio == 0 ? 0x38 : e4m3_byte_saturated(ratio);
    }

    uint32_t byte = e4m3_byte_saturated(__fmul_rn(global_scale, ratio));
    return byte == 0 ? 0x20 : byte;
  }

  // As dequant_factor(), for ordinary scales.
  __device__ __forceinline__ float factor(float scale) const {
    return modelopt ? __fmul_rn(scale, global_scale) : divide(scale, global_scale, inverse_scale);
  }

  // The same at any value.
  __device__ __forceinline__ uint32_t block_plainly(float amax, float largest, bool bf16) const {
    float scale = modelopt ? block_scale<SPARKFP4_MODELOPT, F32>(amax, largest, global_scale)
                  : bf16   ? block_scale<SPARKFP4_COMPRESSED_TENSORS, Bf16>(amax, largest, global_scale)
                           : block_scale<SPARKFP4_COMPRESSED_TENSORS, F32>(amax, largest, global_scale);
    return e4m3_byte(scale);
  }

  __device__ __forceinline__ float factor_plainly(float scale) const {
    return modelopt ? dequant_factor<SPARKFP4_MODELOPT>(scale, global_scale)
                    : dequant_factor<SPARKFP4_COMPRESSED_TENSORS>(scale, global_scale);
  }
};

// The mantissa of a scale, an index of Rule::halves.
__device__ __forceinline__ uint32_t mantissa(float scale) {
  return __float_as_uint(scale) >> 20 & 7;
}

}  // namespace sparkfp4::cuda
