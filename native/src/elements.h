// The elements of a strip of blocks, of each type, in the lanes of vectors: lane b of every vector is of block b.
#pragma once

#include "nibbles.h"

namespace sparkfp4 {

// What the widths of elements differ in. Lane b of vector j holds elements 2j and 2j + 1 of block b, or, for 32-bit
// elements, element j; codes.h has those of codes.
template <typename Type>
struct Layout {
  static constexpr bool kNarrow = sizeof(typename Type::Bits) == 2;
  static constexpr int kBytes = sizeof(typename Type::Bits);
  static constexpr int kVectors = Type::kCodes ? kCodeVectors : kNarrow ? 8 : 16;
  static constexpr uint32_t kMagnitude = Type::kCodes ? kCodeMagnitude : kNarrow ? 0x7fff7fff : 0x7fffffff;
};

template <typename Isa, typename Type>
SPARKFP4_INLINE void load_strip(const unsigned char *source, typename Isa::Int *x) {
  if constexpr (Type::kCodes) {
    load_codes<Isa, Type>(source, x);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < Layout<Type>::kVectors / 4; i++) {
      Isa::load_transposed(source + 16 * i, Type::kBlockBytes, x + 4 * i);
    }
  }
}

// The blocks' largest magnitudes, as a Type's bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int largest_magnitudes(const typename Isa::Int *x) {
  using Int = typename Isa::Int;
  constexpr int kVectors = Layout<Type>::kVectors;
  Int largest[kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kVectors; j++) {
    largest[j] = Isa::bit_and(x[j], Isa::set(Layout<Type>::kMagnitude));
  }

#pragma GCC unroll 4
  for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < half; j++) {
      largest[j] = Layout<Type>::kNarrow ? Isa::max_u16(largest[j], largest[j + half])
                                         : Isa::max_u32(largest[j], largest[j + half]);
    }
  }

  if constexpr (Layout<Type>::kNarrow) {
    Int high = Isa::template shift_right<16>(largest[0]);
    return Isa::max_u32(Isa::bit_and(largest[0], Isa::set(0xffff)), high);
  } else {
    return largest[0];
  }
}

// Bits of a Type, in the low half of each lane where it is narrow, to binary32.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Float widen_low(typename Isa::Int bits) {
  if constexpr (std::is_same_v<Type, Bf16>) {
    return Isa::as_float(Isa::template shift_left<16>(bits));
  } else if constexpr (std::is_same_v<Type, F16>) {
    return Isa::from_half(bits);
  } else {
    return Isa::as_float(bits);
  }
}

template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Float widen_high(typename Isa::Int bits) {
  if constexpr (std::is_same_v<Type, Bf16>) {
    return Isa::as_float(Isa::bit_and(bits, Isa::set(0xffff0000)));
  } else {
    return Isa::from_half(Isa::template shift_right<16>(bits));
  }
}

// Codes of all elements of a vector, each in the low bits of its place.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int encode_vector(typename Isa::Int x, const typename Isa::Int *bits) {
  typename Isa::Int magnitude = Isa::bit_and(x, Isa::set(Layout<Type>::kMagnitude));
  return Type::kCodes             ? Isa::code_8(x, magnitude, bits)
         : Layout<Type>::kNarrow ? Isa::code_16(x, magnitude, bits)
                                 : Isa::code_32(x, magnitude, bits);
}

// Eight codes of each block in a lane, the first in its lowest bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int pack_half(const typename Isa::Int *codes) {
  using Int = typename Isa::Int;
  if constexpr (Type::kCodes) {
    return pack_codes<Isa>(codes);
  } else if constexpr (Layout<Type>::kNarrow) {
    // Of a lane's two codes a product makes a byte: the first and 16 times the second.
    Int first = Isa::set(0x00100001);
    Int second = Isa::set(0x10000100);
    Int low = Isa::bit_or(Isa::multiply_pairs(codes[0], first), Isa::multiply_pairs(codes[1], second));
    Int high = Isa::bit_or(Isa::multiply_pairs(codes[2], first), Isa::multiply_pairs(codes[3], second));
    return Isa::bit_or(low, Isa::template shift_left<16>(high));
  } else {
    Int a = Isa::bit_or(codes[0], Isa::template shift_left<4>(codes[1]));
    Int b = Isa::bit_or(codes[2], Isa::template shift_left<4>(codes[3]));
    Int c = Isa::bit_or(codes[4], Isa::template shift_left<4>(codes[5]));
    Int d = Isa::bit_or(codes[6], Isa::template shift_left<4>(codes[7]));
    Int low = Isa::bit_or(a, Isa::template shift_left<8>(b));
    Int high = Isa::bit_or(c, Isa::template shift_left<8>(d));
    return Isa::bit_or(low, Isa::template shift_left<16>(high));
  }
}

// An element of all blocks without its sign.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE typename Isa::Float wide_magnitude(const typename Isa::Int *x, typename Isa::Float source_scale) {
  if constexpr (Type::kCodes) {
    constexpr int kInHalf = kElement % 8;
    constexpr int kVector = (kNibbles<Type> ? kInHalf % 2 : kInHalf / 4) + kElement / 8 * 2;
    constexpr int kByte = kNibbles<Type> ? kInHalf / 2 : kInHalf % 4;
    return code_magnitude<Isa, Type, kByte>(x[kVector], source_scale);
  } else {
    typename Isa::Int magnitude =
        Isa::bit_and(x[Layout<Type>::kNarrow ? kElement / 2 : kElement], Isa::set(Layout<Type>::kMagnitude));
    if constexpr (Layout<Type>::kNarrow && kElement % 2 == 1) {
      return widen_high<Isa, Type>(magnitude);
    } else {
      return widen_low<Isa, Type>(magnitude);
    }
  }
}

// The largest |w| of all blocks, as a Type's bits; what is not finite exceeds all that is.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int strip_amax(const typename Isa::Int *x, typename Isa::Float source_scale) {
  if constexpr (Type::kCodes) {
    return largest_of_codes<Isa, Type>(largest_codes<Isa>(x), source_scale);
  } else {
    return largest_magnitudes<Isa, Type>(x);
  }
}

// A strip between its steps.
template <typename Isa, typename Type, bool = kNibbles<Type>>
struct Prepared {
  typename Isa::Int x[Layout<Type>::kVectors];
  typename Isa::Int bits[kThresholds];
  typename Isa::Float d;
  typename Isa::Float source_scale;  // of codes
};

template <typename Isa, typename Type>
struct Prepared<Isa, Type, true> {
  typename Isa::Int halves[2];
  typename Isa::Int tables[2];
  typename Isa::Float d;
  typename Isa::Float source_scale;
};

}  // namespace sparkfp4
