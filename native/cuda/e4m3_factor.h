// The factors by which E2M1 codes of E4M3 elements are products in binary16. Host and device share it, and
// test/e4m3_factor.cpp proves it.
//
// A product is w / d * 2^-14, so that what E2M1 has below 1 is subnormal in binary16 and a code's last place is bit 9:
// half a code added to the bits rounds it. Elements have four significant bits, so that quotients are at midpoints only
// where w / d is by factors c / m, with c of 1, 3, 5 and 7 and m of 8 to 15, each times a power of two, and those are
// 2^-6.7 of themselves apart or more. A factor within kNear of one is moved kNear away from it, to the side where its
// elements belong; then codes are right whatever factor and products lose to rounding, of which that of 0.25, subnormal,
// is most: 2^-9. Where some belong above and some below, quotients tie, and products by the rounded c / m, rounded once
// more, tie like them: they go to the even code, which is where ties go.
#pragma once

#include <cmath>

#include "../src/arithmetic.h"

namespace sparkfp4::cuda {

constexpr float kNear = 0.003f;

// The factor of a block is the bits of its scale's mantissa's less so much for each exponent of the scale.
struct Factor {
  uint32_t bits;  // of a binary16 with more exponents; 0 where there is none
  bool even;      // whether products may tie
};

// Where the elements that are near midpoints belong.
struct NearSides {
  bool up;
  bool down;
  bool even;      // as ties would go
};

constexpr NearSides kNoNearSides = {false, false, true};

// The element nearest to where a midpoint is among them, or one of the same mantissa.
SPARKFP4_FUNCTION float nearest_element(float at) {
  return bits_as<float>((bits_as<uint32_t>(at) + 0x00080000u) & 0xfff00000u);
}

// With the element nearest to midpoint 1, 3, 5 or 7, which stands for those of the same mantissa: 0.25, 1.25 and its
// doubles are ties that go down, 0.75, 1.75 and 3.5 go up. quotient is the element's, by d, as the definition has it.
SPARKFP4_FUNCTION NearSides add_nearest(NearSides sides, int midpoint, float at, float element, float quotient) {
  bool up_from_tie = midpoint == 3 || midpoint == 7;
  float m = static_cast<float>(midpoint);
  bool near = fabsf(at - element) <= kNear * element;
  bool passes = up_from_tie ? quotient >= m : quotient > m;
  sides.up |= near && passes;
  sides.down |= near && !passes;
  sides.even &= !near || passes == up_from_tie;
  return sides;
}

// Of d from a scale of exponent 0; ratio is the source's scale by d, nearly.
SPARKFP4_FUNCTION Factor make_factor(NearSides sides, float ratio) {
  // Of binary32 less binary16's, to units of 2^-8 from quotients of 2^-14, and of a scale's exponents.
  constexpr uint32_t kBias = 127 - 15 + 14 - 8 - 7;
  bool both = sides.up && sides.down;
  if (both && !sides.even) {
    return {0, false};
  }

  float moved = ratio * (both ? 1 : sides.up ? 1 + kNear : sides.down ? 1 - kNear : 1);
  return {((bits_as<uint32_t>(moved) + 0x1000) >> 13) - (kBias << 10), both};
}

// Whether a factor serves all blocks. One of zeros needs no more than that it is no infinity and not below 0; that of
// any other is between, for its largest element times it is 6 or so.
SPARKFP4_FUNCTION bool serves(Factor factor) {
  constexpr uint32_t kMostZeroScale = 7 << 10;   // the exponents of scales of such blocks, 1 and 0.125
  constexpr uint32_t kLeastZeroScale = 4 << 10;
  constexpr uint32_t kInfinity = 31 << 10;
  return factor.bits >= kMostZeroScale && factor.bits < kLeastZeroScale + kInfinity;
}

// That of a block whose scale is the byte, from the bits of its mantissa's: a binary16, for elements times 2^-8.
SPARKFP4_FUNCTION uint32_t factor_of(uint32_t bits, uint32_t byte) { return bits - ((byte & 0x78) << 7); }

// Two products with half a code added: codes are bits 9 to 11 of each. one is 1.
template <bool kEven>
SPARKFP4_FUNCTION uint32_t round_products(uint32_t products, uint32_t one) {
  constexpr uint32_t kHalfCode = 0x01000100u;
  constexpr uint32_t kLastPlace = 0x00010001u;
  return kEven ? products + (products >> 9 & kLastPlace) + (kHalfCode - kLastPlace) : products * one + kHalfCode;
}

}  // namespace sparkfp4::cuda
