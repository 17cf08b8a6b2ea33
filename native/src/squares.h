// The error sums of a strip: the squares of its weights and of their errors, by the definition's tree, a block a lane.
#pragma once

#include "elements.h"

namespace sparkfp4 {

// The squares of w and w - e2m1(code) * d, one rounding an operation.
template <typename Isa>
struct Squares {
  typename Isa::Float weight;
  typename Isa::Float error;
};

template <typename Isa>
SPARKFP4_INLINE Squares<Isa> squares(typename Isa::Float w, typename Isa::Int code, typename Isa::Float d) {
  typename Isa::Float error = Isa::sub(w, Isa::mul(Isa::e2m1(code), d));
  return {Isa::mul(w, w), Isa::mul(error, error)};
}

template <typename Isa>
SPARKFP4_INLINE Squares<Isa> plus(Squares<Isa> a, Squares<Isa> b) {
  return {Isa::add(a.weight, b.weight), Isa::add(a.error, b.error)};
}

// Element i and i + 8 of codes.
template <typename Isa, typename Type, bool kShifted, int kElement>
SPARKFP4_INLINE Squares<Isa> two_squares_of_codes(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  constexpr int kVector = kElement / 4;
  constexpr int kByte = kElement % 4;
  Squares<Isa> both[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    // The squares are the same without the signs.
    typename Isa::Float w;
    if constexpr (kShifted) {
      typename Isa::Float scale = Isa::mul(strip.source_scale, Isa::set_float(0x1p120f));
      w = Isa::mul(Isa::as_float(shifted_code<Isa, kByte>(strip.x[kVector + 2 * i])), scale);
    } else {
      w = code_magnitude<Isa, Type, kByte>(strip.x[kVector + 2 * i], strip.source_scale);
    }

    typename Isa::Int code = Isa::template shift_right<8 * kByte>(codes[kVector + 2 * i]);
    typename Isa::Float error = Isa::sub(w, Isa::mul(Isa::e2m1_magnitude(code), strip.d));
    both[i] = {Isa::mul(w, w), Isa::mul(error, error)};
  }

  return plus<Isa>(both[0], both[1]);
}

// Element i and i + 8.
template <typename Isa, typename Type, bool kShifted, int kElement>
SPARKFP4_INLINE Squares<Isa> two_squares(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  using Int = typename Isa::Int;
  if constexpr (Type::kCodes) {
    return two_squares_of_codes<Isa, Type, kShifted, kElement>(strip, codes);
  } else {
    constexpr int kFirst = Layout<Type>::kNarrow ? kElement / 2 : kElement;
    constexpr int kSecond = kFirst + Layout<Type>::kVectors / 2;
    Int a = strip.x[kFirst];
    Int b = strip.x[kSecond];
    if constexpr (!Isa::kSignedE2m1) {
      // The squares are the same without the signs.
      a = Isa::bit_and(a, Isa::set(Layout<Type>::kMagnitude));
      b = Isa::bit_and(b, Isa::set(Layout<Type>::kMagnitude));
    }

    if constexpr (Layout<Type>::kNarrow && kElement % 2 == 1) {
      return plus<Isa>(
          squares<Isa>(widen_high<Isa, Type>(a), Isa::template shift_right<16>(codes[kFirst]), strip.d),
          squares<Isa>(widen_high<Isa, Type>(b), Isa::template shift_right<16>(codes[kSecond]), strip.d));
    } else {
      return plus<Isa>(squares<Isa>(widen_low<Isa, Type>(a), codes[kFirst], strip.d),
                       squares<Isa>(widen_low<Isa, Type>(b), codes[kSecond], strip.d));
    }
  }
}

// The fixed tree: i with i + 8, then i + 4, i + 2, i + 1.
template <typename Isa, typename Type, bool kShifted>
SPARKFP4_INLINE Squares<Isa> sum_squares(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  auto s04 = plus<Isa>(two_squares<Isa, Type, kShifted, 0>(strip, codes),
                       two_squares<Isa, Type, kShifted, 4>(strip, codes));
  auto s26 = plus<Isa>(two_squares<Isa, Type, kShifted, 2>(strip, codes),
                       two_squares<Isa, Type, kShifted, 6>(strip, codes));
  auto even = plus<Isa>(s04, s26);
  auto s15 = plus<Isa>(two_squares<Isa, Type, kShifted, 1>(strip, codes),
                       two_squares<Isa, Type, kShifted, 5>(strip, codes));
  auto s37 = plus<Isa>(two_squares<Isa, Type, kShifted, 3>(strip, codes),
                       two_squares<Isa, Type, kShifted, 7>(strip, codes));
  auto odd = plus<Isa>(s15, s37);
  return plus<Isa>(even, odd);
}

// The values of an element's codes, with their signs or without.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE typename Isa::Float value_of_nibble(const typename Isa::Int *halves) {
  typename Isa::Int code = Isa::template shift_right<kElement % 8 * 4>(halves[kElement / 8]);
  if constexpr (Type::kSource == Int4::kSource) {
    return Isa::int4(code);
  } else {
    return Isa::e2m1(code);
  }
}

// Of element i and i + 8; codes are the strip's E2M1 codes, as its halves are.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE Squares<Isa> two_squares_of_nibbles(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  using Float = typename Isa::Float;
  Float w = Isa::mul(value_of_nibble<Isa, Type, kElement>(strip.halves), strip.source_scale);
  Float w8 = Isa::mul(value_of_nibble<Isa, Type, kElement + 8>(strip.halves), strip.source_scale);
  Float error = Isa::sub(w, Isa::mul(value_of_nibble<Isa, E2m1, kElement>(codes), strip.d));
  Float error8 = Isa::sub(w8, Isa::mul(value_of_nibble<Isa, E2m1, kElement + 8>(codes), strip.d));
  return {Isa::add(Isa::mul(w, w), Isa::mul(w8, w8)), Isa::add(Isa::mul(error, error), Isa::mul(error8, error8))};
}

// Whether no weight of a strip, no square and no sum of four squares is rounded: those of INT4 are up to 256 times the
// scale's square, and bfloat16 has eight bits; E2M1's under a power of two never are.
template <typename Isa, typename Type>
SPARKFP4_INLINE bool are_squares_exact(typename Isa::Float scale) {
  constexpr uint32_t kBelow = Type::kSource == Int4::kSource ? 0xffff : 0x7fffff;
  return Isa::all(Isa::equal(Isa::as_float(Isa::bit_and(Isa::as_int(scale), Isa::set(kBelow))), Isa::set_float(0)));
}

template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE void add_exact_square(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes,
                                      typename Isa::Float *values, typename Isa::Float *error) {
  using Float = typename Isa::Float;
  Float value = value_of_nibble<Isa, Type, kElement>(strip.halves);
  Float nearest = Isa::mul(value_of_nibble<Isa, E2m1, kElement>(codes), strip.d);
  // The product in a fused operation is not rounded, and so it is a weight.
  Float negative = Isa::sub_mul(nearest, value, strip.source_scale);
  *values = Isa::mul_add(value, value, *values);
  *error = Isa::mul(negative, negative);
}

// Of element i, i + 8, i + 4 and i + 12, whose squares are exact.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE Squares<Isa> four_exact_squares(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes,
                                                typename Isa::Float scale_square) {
  typename Isa::Float values = Isa::set_float(0);
  typename Isa::Float errors[4];
  add_exact_square<Isa, Type, kElement>(strip, codes, &values, &errors[0]);
  add_exact_square<Isa, Type, kElement + 8>(strip, codes, &values, &errors[1]);
  add_exact_square<Isa, Type, kElement + 4>(strip, codes, &values, &errors[2]);
  add_exact_square<Isa, Type, kElement + 12>(strip, codes, &values, &errors[3]);
  return {Isa::mul(values, scale_square), Isa::add(Isa::add(errors[0], errors[1]), Isa::add(errors[2], errors[3]))};
}

template <typename Isa, typename Type, bool kExact, int kElement>
SPARKFP4_INLINE Squares<Isa> four_squares_of_nibbles(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes,
                                                     typename Isa::Float scale_square) {
  if constexpr (kExact) {
    return four_exact_squares<Isa, Type, kElement>(strip, codes, scale_square);
  } else {
    return plus<Isa>(two_squares_of_nibbles<Isa, Type, kElement>(strip, codes),
                     two_squares_of_nibbles<Isa, Type, kElement + 4>(strip, codes));
  }
}

template <typename Isa, typename Type, bool kExact>
SPARKFP4_INLINE Squares<Isa> sum_squares_of_nibbles(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  typename Isa::Float square = Isa::mul(strip.source_scale, strip.source_scale);
  auto even = plus<Isa>(four_squares_of_nibbles<Isa, Type, kExact, 0>(strip, codes, square),
                        four_squares_of_nibbles<Isa, Type, kExact, 2>(strip, codes, square));
  auto odd = plus<Isa>(four_squares_of_nibbles<Isa, Type, kExact, 1>(strip, codes, square),
                       four_squares_of_nibbles<Isa, Type, kExact, 3>(strip, codes, square));
  return plus<Isa>(even, odd);
}

}  // namespace sparkfp4
