// The scales of a vector of blocks, and the thresholds that stand in for the division of their elements: strip.h.
#pragma once

#include <type_traits>

#include "arithmetic.h"

#define SPARKFP4_INLINE __attribute__((always_inline)) static inline

namespace sparkfp4 {

constexpr float kMinFactor = 0x1p-100f;
constexpr float kMaxFactor = 0x1p125f;
constexpr int kThresholds = 8;
constexpr float kMidpoints[kThresholds] = {0, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
constexpr int kPrefetch = 4096;  // bytes ahead of the load

template <typename Isa>
struct Factors {
  typename Isa::Int bytes;  // E4M3
  typename Isa::Float d;
};

// 0 <= x <= 448 to E4M3, nearest even.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Float round_e4m3(typename Isa::Float x, typename Isa::Int *bytes) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  // The spacing of floats at 2^14 is 2^-9, that of E4M3's subnormals.
  Float magic = Isa::set_float(0x1.8p14f);
  Float shifted = Isa::add(x, magic);
  Int bits = Isa::as_int(x);
  Int odd = Isa::bit_and(Isa::template shift_right<20>(bits), Isa::set(1));
  Int rounded = Isa::add_int(bits, Isa::add_int(odd, Isa::set(0x7ffff)));
  auto subnormal = Isa::less(x, Isa::set_float(0x1p-6f));
  *bytes = Isa::select_int(subnormal, Isa::bit_and(Isa::as_int(shifted), Isa::set(0xf)),
                           Isa::sub_int(Isa::template shift_right<20>(rounded), Isa::set(120 << 3)));
  Float normal = Isa::as_float(Isa::bit_and(rounded, Isa::set(0xfff00000)));
  return Isa::select(subnormal, Isa::sub(shifted, magic), normal);
}

// Of the blocks' amaxes; largest is the E2M1 value that they are to become.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
SPARKFP4_INLINE Factors<Isa> factors(typename Isa::Float amax, float largest, float global_scale) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  Float zero = Isa::set_float(0);
  Factors<Isa> result;
  if constexpr (kRecipe == SPARKFP4_MODELOPT) {
    Float ratio = Isa::divide(amax, Isa::set_float(largest * global_scale));
    Float clamped = Isa::min(Isa::max(ratio, Isa::set_float(0x1p-9f)), Isa::set_float(448.0f));
    Float positive = Isa::select(Isa::equal(ratio, zero), Isa::set_float(1.0f), clamped);
    result.d = Isa::mul(round_e4m3<Isa>(positive, &result.bytes), Isa::set_float(global_scale));
  } else {
    Float part = Isa::divide(amax, Isa::set_float(largest));
    if constexpr (std::is_same_v<Type, Bf16>) {
      Int bits = Isa::as_int(part);
      Int odd = Isa::bit_and(Isa::template shift_right<16>(bits), Isa::set(1));
      Int rounded = Isa::add_int(bits, Isa::add_int(odd, Isa::set(0x7fff)));
      part = Isa::as_float(Isa::bit_and(rounded, Isa::set(0xffff0000)));
    }

    Float ratio = Isa::min(Isa::mul(Isa::set_float(global_scale), part), Isa::set_float(448.0f));
    Float scale = round_e4m3<Isa>(ratio, &result.bytes);
    auto none = Isa::equal(scale, zero);
    result.bytes = Isa::select_int(none, Isa::set(0x20), result.bytes);
    scale = Isa::select(none, Isa::set_float(0.125f), scale);
    result.d = Isa::divide(scale, Isa::set_float(global_scale));
  }

  return result;
}

template <typename Isa>
SPARKFP4_INLINE bool within(typename Isa::Float x, float least, float most) {
  return Isa::all(Isa::less_equal(Isa::set_float(least), x)) && Isa::all(Isa::less_equal(x, Isa::set_float(most)));
}

// Of the midpoint m and the floats just below them, as bits: of the largest float w whose RN(w / d) is no greater than
// m (kStrict: a tie goes down, to the even code) or is less than m. With u half the spacing of floats at m, the
// quotient passes if and only if w > d * (m + u), resp. w >= d * (m - u): a tie at that bound rounds to m, whose
// mantissa is even. The bound, d * m plus or minus d * u, is rounded once, and the exact remainder tells on which side
// of it that fell.
template <typename Isa, bool kStrict>
SPARKFP4_INLINE typename Isa::Int threshold(typename Isa::Float d, float m, float u) {
  using Float = typename Isa::Float;
  Float midpoint = Isa::set_float(m);
  Float margin = Isa::mul(d, Isa::set_float(kStrict ? u : -u));
  Float nearest = Isa::mul_add(d, midpoint, margin);
  Float remainder = Isa::sub_mul(nearest, d, midpoint);
  auto passes = kStrict ? Isa::less(margin, remainder) : Isa::less_equal(margin, remainder);
  return Isa::decrement_if(passes, Isa::as_int(nearest));
}

// Where a float near the threshold of midpoint i is known already: whether it passes. The remainder is exact where it
// matters, and half the spacing is that at the midpoint.
template <typename Isa, int kIndex>
SPARKFP4_INLINE typename Isa::Mask passes(typename Isa::Float w, typename Isa::Float d) {
  constexpr float kHalfSpacing = kMidpoints[kIndex] < 1 ? 0x1p-25f : kMidpoints[kIndex] < 2   ? 0x1p-24f
                                                                 : kMidpoints[kIndex] < 4 ? 0x1p-23f
                                                                                          : 0x1p-22f;
  typename Isa::Float remainder = Isa::sub_mul(w, d, Isa::set_float(kMidpoints[kIndex]));
  if constexpr (kIndex == 1) {
    // A quarter of d is a float itself, and the next one passes.
    return Isa::less(Isa::set_float(0), remainder);
  } else if constexpr (kIndex % 2 == 1) {
    return Isa::less(Isa::mul(d, Isa::set_float(kHalfSpacing)), remainder);
  } else {
    return Isa::less_equal(Isa::mul(d, Isa::set_float(-kHalfSpacing)), remainder);
  }
}

// bits[0]: of the largest w whose quotient is zero, which has no sign; bits[i]: of the largest w that gets a code below
// i. 2.5 and 5, and 3.5, are the doubles of 1.25 and 1.75, and so are their thresholds.
template <typename Isa>
SPARKFP4_INLINE void thresholds(typename Isa::Float d, typename Isa::Int *bits) {
  using Int = typename Isa::Int;
  Int doubled = Isa::set(1 << 23);
  // d * 2^-150 rounded down: in units of the smallest subnormal, or as a normal float.
  Int subnormal = Isa::truncate(Isa::mul(d, Isa::set_float(0.5f)));
  Int normal = Isa::sub_int(Isa::as_int(d), Isa::set(150u << 23));
  bits[0] = Isa::select_int(Isa::less(d, Isa::set_float(0x1p24f)), subnormal, normal);
  bits[1] = Isa::as_int(Isa::mul(d, Isa::set_float(0.25f)));
  bits[2] = threshold<Isa, false>(d, 0.75f, 0x1p-25f);
  bits[3] = threshold<Isa, true>(d, 1.25f, 0x1p-24f);
  bits[4] = threshold<Isa, false>(d, 1.75f, 0x1p-24f);
  bits[5] = Isa::add_int(bits[3], doubled);
  bits[6] = Isa::add_int(bits[4], doubled);
  bits[7] = Isa::add_int(bits[5], doubled);
}

// The thresholds as the largest values of a 16-bit type that do not pass, in both halves of a lane.
template <typename Isa, typename Type>
SPARKFP4_INLINE void narrow(typename Isa::Int *bits) {
  if constexpr (std::is_same_v<Type, Bf16>) {
    for (int i = 0; i < kThresholds; i++) {
      bits[i] = Isa::duplicate_high(bits[i]);
    }
  } else {
    // d <= kMaxFactor leaves no quotient of a binary16 but 0 so small that it rounds to zero.
    bits[0] = Isa::set(0);
    for (int i = 1; i < kThresholds; i++) {
      typename Isa::Int passes = Isa::add_int(bits[i], Isa::set(1));
      typename Isa::Int up = Isa::to_half_upwards(Isa::as_float(passes));
      bits[i] = Isa::duplicate_low(Isa::sub_int(up, Isa::set(1)));
    }
  }
}

}  // namespace sparkfp4
