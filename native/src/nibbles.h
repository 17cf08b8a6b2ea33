// What strip.h needs to know of INT4 and E2M1 sources: the sixteen codes of a block become E2M1 codes by a table, one a
// block, which a byte shuffle looks up for four (two) blocks at once.
//
// The table of a block, half a byte a code, is two 32-bit lanes. Code k + 1's half byte of `above` counts the thresholds
// that its magnitude passes: each adds 1 to those from its first one on, which is 0x11111111 shifted by as many.
#pragma once

#include <utility>

#include "codes.h"

namespace sparkfp4 {

// By the largest magnitude that does not pass a threshold: where those begin that do, in bits, four a magnitude from 1 on.
constexpr unsigned char kShifts[16] = {0, 4, 8, 12, 16, 20, 24, 28, 32, 32, 32, 32, 32, 32, 32, 32};

// The magnitude of a block's largest code, of whose halves these are the codes.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int largest_nibbles(const typename Isa::Int *halves) {
  using Int = typename Isa::Int;
  Int low = Isa::set(Type::kSource == Int4::kSource ? 0x0f0f0f0f : 0x07070707);
  Int codes[4] = {Isa::bit_and(halves[0], low), Isa::bit_and(Isa::template shift_right<4>(halves[0]), low),
                  Isa::bit_and(halves[1], low), Isa::bit_and(Isa::template shift_right<4>(halves[1]), low)};
  if constexpr (Type::kSource == Int4::kSource) {
    static constexpr unsigned char kMagnitudes[16] = {8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7};
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      codes[j] = Isa::lookup(kMagnitudes, codes[j]);
    }
  }

  return largest_bytes<Isa>(codes);
}

// What those add to `above` that pass the threshold of midpoint kIndex; quotients are within their limits.
template <typename Isa, typename Type, int kIndex>
SPARKFP4_INLINE typename Isa::Int ones_above(typename Isa::Float quotient, typename Isa::Float d,
                                             typename Isa::Float scale) {
  using Int = typename Isa::Int;
  constexpr float kUnit = Type::kSource == Int4::kSource ? 1 : 2;
  Int code = Isa::truncate(Isa::mul(quotient, Isa::set_float(kUnit * kMidpoints[kIndex] * kAbove)));
  typename Isa::Float value;
  if constexpr (Type::kSource == Int4::kSource) {
    value = Isa::to_float(code);
  } else {
    // By twice the value, what E2M1 has.
    static constexpr unsigned char kFloors[16] = {0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7};
    code = Isa::lookup(kFloors, code);
    value = Isa::e2m1_magnitude(code);
  }

  code = Isa::decrement_if(passes<Isa, kIndex>(Isa::mul(value, scale), d), code);
  return Isa::shifted_ones(kShifts, code);
}

template <typename Isa, typename Type, int... kIndices>
SPARKFP4_INLINE typename Isa::Int sum_above(typename Isa::Float quotient, typename Isa::Float d,
                                            typename Isa::Float scale, std::integer_sequence<int, kIndices...>) {
  typename Isa::Int ones[] = {ones_above<Isa, Type, 1 + kIndices>(quotient, d, scale)...};
  typename Isa::Int low = Isa::add_int(Isa::add_int(ones[0], ones[1]), Isa::add_int(ones[2], ones[3]));
  return Isa::add_int(low, Isa::add_int(Isa::add_int(ones[4], ones[5]), ones[6]));
}

// The same of all thresholds, whatever the quotient.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int sum_above_any(typename Isa::Float d, typename Isa::Float scale) {
  using Int = typename Isa::Int;
  Int bits[kThresholds];
  thresholds<Isa>(d, bits);
  typename Isa::Float inverse = Isa::reciprocal_above(scale);
  Int sum = Isa::set(0);
#pragma GCC unroll 7
  for (int i = 1; i < kThresholds; i++) {
    Int largest = narrow_code<Isa, Type>(bits[i], inverse, scale);
    sum = Isa::add_int(sum, Isa::shifted_ones(kShifts, largest));
  }

  return sum;
}

// The blocks' tables: E2M1 codes of the source's codes 0 to 7, and of 8 to 15.
template <typename Isa, typename Type>
SPARKFP4_INLINE void nibble_tables(typename Isa::Float d, typename Isa::Float scale, typename Isa::Int *tables) {
  using Int = typename Isa::Int;
  typename Isa::Float quotient = Isa::mul(d, Isa::reciprocal(scale));
  // Five times that is less than all that ones_above has tables for.
  Int above = Isa::all(Isa::less(quotient, Isa::set_float(1.5f)))
                  ? sum_above<Isa, Type>(quotient, d, scale, std::make_integer_sequence<int, kThresholds - 1>())
                  : sum_above_any<Isa, Type>(d, scale);
  Int positive = Isa::template shift_left<4>(above);
  if constexpr (Type::kSource == Int4::kSource) {
    // -8 to -1: the half bytes in reverse.
    Int bytes = Isa::reverse_bytes(above);
    Int low = Isa::set(0x0f0f0f0f);
    Int reverse = Isa::bit_or(Isa::bit_and(Isa::template shift_right<4>(bytes), low),
                              Isa::template shift_left<4>(Isa::bit_and(bytes, low)));
    tables[0] = Isa::bit_or(reverse, Isa::set(0x88888888));
    tables[1] = positive;
  } else {
    tables[0] = positive;
    tables[1] = Isa::bit_or(positive, Isa::set(0x88888880));
  }
}

// A byte for each half one, in their order: of the first block of each pair, and of the second.
template <typename Isa>
SPARKFP4_INLINE void expand_nibbles(typename Isa::Int x, typename Isa::Int *to) {
  typename Isa::Int mask = Isa::set(0x0f0f0f0f);
  typename Isa::Int low = Isa::bit_and(x, mask);
  typename Isa::Int high = Isa::bit_and(Isa::template shift_right<4>(x), mask);
  to[0] = Isa::unpack_low(low, high);
  to[1] = Isa::unpack_high(low, high);
}

// The source's codes of a strip by its blocks' tables.
template <typename Isa>
SPARKFP4_INLINE void encode_nibbles(const typename Isa::Int *source, const typename Isa::Int *tables,
                                    typename Isa::Int *packed) {
  using Int = typename Isa::Int;
  Int of_blocks[2];
  Isa::join_pairs(tables[0], tables[1], of_blocks);
  Int pair = Isa::set(0x10011001);
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    Int codes[2];
    Int table[2];
    expand_nibbles<Isa>(source[i], codes);
    expand_nibbles<Isa>(of_blocks[i], table);
    packed[i] = Isa::pack_bytes(Isa::multiply_byte_pairs(Isa::lookup(table[0], codes[0]), pair),
                                Isa::multiply_byte_pairs(Isa::lookup(table[1], codes[1]), pair));
  }
}

}  // namespace sparkfp4
