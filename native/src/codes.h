// What strip.h needs to know of sources of codes: a byte an element in registers, whose low seven bits order as the
// magnitudes do and whose highest is the sign.
//
// A source's scale is positive, so that |w| rises with the magnitude of its code, and a block has one: the thresholds
// are narrowed to magnitudes of codes, and 64 (32) elements are compared at once, dequantized only for the sums.
#pragma once

#include "thresholds.h"

namespace sparkfp4 {

// Between these no product of a code and its scale, no threshold and no quotient is subnormal, infinite or rounds to
// zero.
constexpr float kMinScale = 0x1p-60f;
constexpr float kMaxScale = 0x1p60f;

constexpr int kCodeVectors = 4;
constexpr uint32_t kCodeMagnitude = 0x7f7f7f7f;

template <typename Type>
constexpr bool kNibbles = Type::kBlockBytes == 8;

// Lane b of vector j holds, from its lowest byte on, elements 4j to 4j + 3 of block b; or, of nibbles, the even
// elements of its first half, the odd ones, and those of its second half.
template <typename Isa, typename Type>
SPARKFP4_INLINE void load_codes(const unsigned char *source, typename Isa::Int *x) {
  if constexpr (kNibbles<Type>) {
    // Of each nibble: the sign and the magnitude.
    static constexpr unsigned char kInt4[16] = {0x88, 0x87, 0x86, 0x85, 0x84, 0x83, 0x82, 0x81, 0, 1, 2, 3, 4, 5, 6, 7};
    static constexpr unsigned char kE2m1[16] = {0, 1, 2, 3, 4, 5, 6, 7, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87};
    const unsigned char *table = Type::kSource == Int4::kSource ? kInt4 : kE2m1;
    typename Isa::Int halves[2];
    Isa::load_pairs(source, halves);
    typename Isa::Int low = Isa::set(0x0f0f0f0f);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      x[2 * i] = Isa::lookup(table, Isa::bit_and(halves[i], low));
      x[2 * i + 1] = Isa::lookup(table, Isa::bit_and(Isa::template shift_right<4>(halves[i]), low));
    }
  } else {
    Isa::load_transposed(source, Type::kBlockBytes, x);
  }
}

// Of all bytes of a lane, in four vectors.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Int largest_bytes(const typename Isa::Int *x) {
  typename Isa::Int any = Isa::max_u8(Isa::max_u8(x[0], x[1]), Isa::max_u8(x[2], x[3]));
  any = Isa::max_u8(any, Isa::template shift_right<16>(any));
  any = Isa::max_u8(any, Isa::template shift_right<8>(any));
  return Isa::bit_and(any, Isa::set(0xff));
}

// The magnitude of a block's largest code.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Int largest_codes(const typename Isa::Int *x) {
  typename Isa::Int magnitudes[kCodeVectors];
#pragma GCC unroll 4
  for (int j = 0; j < kCodeVectors; j++) {
    magnitudes[j] = Isa::bit_and(x[j], Isa::set(kCodeMagnitude));
  }

  return largest_bytes<Isa>(magnitudes);
}

// An E4M3 magnitude, at bit 20 of its lane, to binary32.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Float e4m3_value(typename Isa::Int shifted) {
  // Below 2^-6 codes count steps of 2^-9: with the exponent of the lowest binade they are 2^-6 too large.
  auto subnormal = Isa::less_int(shifted, Isa::set(8 << 20));
  typename Isa::Int exponent = Isa::select_int(subnormal, Isa::set(121u << 23), Isa::set(120u << 23));
  typename Isa::Float excess = Isa::select(subnormal, Isa::set_float(0x1p-6f), Isa::set_float(0));
  return Isa::sub(Isa::as_float(Isa::add_int(shifted, exponent)), excess);
}

// Whether no magnitude of a strip's E4M3 codes is subnormal: then shifted_code, as binary32, is the value times 2^-120.
// NaN is taken for 480: a strip that has it is of no use.
template <typename Isa>
SPARKFP4_INLINE bool are_shifted_floats(const typename Isa::Int *x) {
  typename Isa::Int one = Isa::set(0x01010101);
  typename Isa::Int below[kCodeVectors];
#pragma GCC unroll 4
  for (int j = 0; j < kCodeVectors; j++) {
    below[j] = Isa::sub_u8(Isa::bit_and(x[j], Isa::set(kCodeMagnitude)), one);
  }

  return !Isa::any_u8_below(Isa::min_u8(Isa::min_u8(below[0], below[1]), Isa::min_u8(below[2], below[3])), 7);
}

// From here on a scale times 2^120 overflows; below, no product with a code does.
constexpr float kMaxShiftedScale = 0x1p7f;

// The magnitude in byte kByte of each lane, at bit 20.
template <typename Isa, int kByte>
SPARKFP4_INLINE typename Isa::Int shifted_code(typename Isa::Int x) {
  constexpr int kShift = 8 * kByte;
  typename Isa::Int shifted;
  if constexpr (kShift < 20) {
    shifted = Isa::template shift_left<20 - kShift>(x);
  } else {
    shifted = Isa::template shift_right<kShift - 20>(x);
  }

  return Isa::bit_and(shifted, Isa::set(0x7f << 20));
}

// The magnitude in byte kByte of each lane, without its sign, times the source's scale.
template <typename Isa, typename Type, int kByte>
SPARKFP4_INLINE typename Isa::Float code_magnitude(typename Isa::Int x, typename Isa::Float scale) {
  constexpr int kShift = 8 * kByte;
  typename Isa::Float value;
  if constexpr (Type::kSource == E4m3::kSource) {
    value = e4m3_value<Isa>(shifted_code<Isa, kByte>(x));
  } else if constexpr (Type::kSource == Int4::kSource) {
    value = Isa::nibble_to_float(Isa::template shift_right<kShift>(x));
  } else {
    value = Isa::e2m1_magnitude(Isa::template shift_right<kShift>(x));
  }

  return Isa::mul(value, scale);
}

// The largest |w| of blocks, as bits; those of NaN where a code is.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int largest_of_codes(typename Isa::Int code, typename Isa::Float scale) {
  typename Isa::Int bits = Isa::as_int(code_magnitude<Isa, Type, 0>(code, scale));
  bits = Isa::bit_and(bits, Isa::set(F32::kMagnitude));
  if constexpr (Type::kSource == E4m3::kSource) {
    bits = Isa::select_int(Isa::less_int(Isa::set(0x7e), code), Isa::set(0x7fc00000), bits);
  }

  return bits;
}

// The largest magnitude whose value is not above x, or that of the float just above x, and its value.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int floor_code(typename Isa::Float x, typename Isa::Float *value) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  if constexpr (Type::kSource == E4m3::kSource) {
    x = Isa::min(x, Isa::set_float(448.0f));
    Int steps = Isa::truncate(Isa::mul(x, Isa::set_float(0x1p9f)));
    auto subnormal = Isa::less(x, Isa::set_float(0x1p-6f));
    Float normal = Isa::as_float(Isa::bit_and(Isa::as_int(x), Isa::set(0xfff00000)));
    *value = Isa::select(subnormal, Isa::mul(Isa::to_float(steps), Isa::set_float(0x1p-9f)), normal);
    Int code = Isa::sub_int(Isa::template shift_right<20>(Isa::as_int(x)), Isa::set(120 << 3));
    return Isa::select_int(subnormal, steps, code);
  } else if constexpr (Type::kSource == Int4::kSource) {
    Int code = Isa::truncate(Isa::min(x, Isa::set_float(8.0f)));
    *value = Isa::to_float(code);
    return code;
  } else {
    x = Isa::min(x, Isa::set_float(6.0f));
    Int code = Isa::sub_int(Isa::template shift_right<22>(Isa::as_int(x)), Isa::set(252));
    auto subnormal = Isa::less(x, Isa::set_float(1.0f));
    code = Isa::select_int(subnormal, Isa::truncate(Isa::mul(x, Isa::set_float(2.0f))), code);
    *value = Isa::e2m1_magnitude(code);
    return code;
  }
}

// The largest magnitude whose |w| = RN(value * scale) is not above the threshold. The quotient is too large by up to a
// thousandth, so that its floor is that magnitude or the next; the product tells which.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int narrow_code(typename Isa::Int threshold, typename Isa::Float inverse,
                                              typename Isa::Float scale) {
  typename Isa::Float value;
  typename Isa::Int code = floor_code<Isa, Type>(Isa::mul(Isa::as_float(threshold), inverse), &value);
  return Isa::decrement_if(Isa::less(Isa::as_float(threshold), Isa::mul(value, scale)), code);
}

// d / scale, too small by up to 2^-21 of itself, is made too large by this: the floor of its product with a midpoint, to
// what the source has, is the largest magnitude that does not pass that threshold, or the next one.
constexpr float kAbove = 1 + 0x1p-20f;

// Of the threshold of midpoint kIndex: in all bytes the largest magnitude that does not pass, a normal one, plus the
// exponent's bias.
template <typename Isa, int kIndex>
SPARKFP4_INLINE typename Isa::Int last_e4m3_below(typename Isa::Float quotient, typename Isa::Float d,
                                                  typename Isa::Float scale) {
  typename Isa::Int product = Isa::as_int(Isa::mul(quotient, Isa::set_float(kMidpoints[kIndex] * kAbove)));
  typename Isa::Float value = Isa::as_float(Isa::bit_and(product, Isa::set(0xfff00000)));
  auto above = passes<Isa, kIndex>(Isa::mul(value, scale), d);
  return Isa::duplicate_byte(Isa::decrement_if(above, Isa::template shift_right<20>(product)));
}

template <typename Isa>
SPARKFP4_INLINE typename Isa::Int less_bytes(typename Isa::Int x, int by) {
  return Isa::sub_u8(x, Isa::set(0x01010101u * static_cast<unsigned char>(by)));
}

// The thresholds under d as magnitudes of E4M3 codes, in all bytes of a lane. bits[0] is the magnitude of zero alone:
// within kMinScale and kMaxScale no other quotient is.
template <typename Isa>
SPARKFP4_INLINE void thresholds_of_e4m3(typename Isa::Float d, typename Isa::Float scale, typename Isa::Int *bits) {
  using Int = typename Isa::Int;
  typename Isa::Float quotient = Isa::mul(d, Isa::reciprocal(scale));
  // All magnitudes are normal ones, and 2.5, 3.5 and 5 are doubles of others: eight codes apart.
  if (within<Isa>(quotient, 0x1.01p-4f, 80.0f)) {
    constexpr int kBias = 120 << 3;
    Int of_1 = last_e4m3_below<Isa, 1>(quotient, d, scale);
    Int of_2 = last_e4m3_below<Isa, 2>(quotient, d, scale);
    Int of_3 = last_e4m3_below<Isa, 3>(quotient, d, scale);
    Int of_4 = last_e4m3_below<Isa, 4>(quotient, d, scale);
    bits[1] = less_bytes<Isa>(of_1, kBias);
    bits[2] = less_bytes<Isa>(of_2, kBias);
    bits[3] = less_bytes<Isa>(of_3, kBias);
    bits[4] = less_bytes<Isa>(of_4, kBias);
    bits[5] = less_bytes<Isa>(of_3, kBias - 8);
    bits[6] = less_bytes<Isa>(of_4, kBias - 8);
    bits[7] = less_bytes<Isa>(of_3, kBias - 16);
  } else {
    thresholds<Isa>(d, bits);
    typename Isa::Float inverse = Isa::reciprocal_above(scale);
#pragma GCC unroll 7
    for (int i = 1; i < kThresholds; i++) {
      bits[i] = Isa::duplicate_byte(narrow_code<Isa, E4m3>(bits[i], inverse, scale));
    }
  }

  bits[0] = Isa::set(0);
}

// Eight codes of each block in a lane, the first in its lowest bits, from two vectors of a byte a code.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Int pack_codes(const typename Isa::Int *codes) {
  // A product makes a byte of two codes, in a word; another one joins the bytes of a lane's words.
  typename Isa::Int pair = Isa::set(0x10011001);
  typename Isa::Int join = Isa::set(0x01000001);
  typename Isa::Int low = Isa::multiply_pairs(Isa::multiply_byte_pairs(codes[0], pair), join);
  typename Isa::Int high = Isa::multiply_pairs(Isa::multiply_byte_pairs(codes[1], pair), join);
  return Isa::bit_or(low, Isa::template shift_left<16>(high));
}

template <typename Isa, typename Type>
static uint32_t code_amax(const unsigned char *source, const float *block_scales, int64_t blocks) {
  typename Isa::Int largest = Isa::set(0);
  int64_t block = 0;
  for (; block + Isa::kWidth <= blocks; block += Isa::kWidth) {
    const unsigned char *strip = source + block * Type::kBlockBytes;
    for (int j = 0; j < Isa::kWidth * Type::kBlockBytes; j += 64) {
      __builtin_prefetch(strip + kPrefetch + j);
    }

    typename Isa::Int x[kCodeVectors];
    load_codes<Isa, Type>(strip, x);
    typename Isa::Float scale = Isa::load_floats(block_scales + block);
    largest = Isa::max_u32(largest, largest_of_codes<Isa, Type>(largest_codes<Isa>(x), scale));
  }

  uint32_t rest = kScalarKernel.code_amax[Type::kSource - kCodeSources](source + block * Type::kBlockBytes,
                                                                        block_scales + block, blocks - block);
  uint32_t main = Isa::reduce_max_u32(largest);
  return rest > main ? rest : main;
}

// The squares of E2M1 codes, summed in quarters, which no sum rounds.
template <typename Isa>
static void code_squares(const unsigned char *codes, const unsigned char *scales, int64_t blocks, double *lanes) {
  constexpr int kScales = kLanes / 2;
  int64_t whole = blocks / kScales * kScales;
  for (int64_t block = 0; block < whole; block += kScales) {
    Isa::add_squares(codes + block * 2 * kPackedBlock, scales + block, lanes);
  }

  kScalarKernel.squares(codes + whole * 2 * kPackedBlock, scales + whole, blocks - whole, lanes);
}

}  // namespace sparkfp4
