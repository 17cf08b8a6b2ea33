// Codes to bfloat16, a vector at a time, for what a checkpoint keeps unquantized.
#pragma once

#include "codes.h"
#include "to_bf16.h"

namespace sparkfp4 {

// Nearest even, in the high half of each lane; x is finite.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Int rounded_to_bf16(typename Isa::Float x) {
  typename Isa::Int bits = Isa::as_int(x);
  typename Isa::Int odd = Isa::bit_and(Isa::template shift_right<16>(bits), Isa::set(1));
  return Isa::add_int(bits, Isa::add_int(odd, Isa::set(0x7fff)));
}

// Any codes and any scale.
template <typename Isa>
static uint32_t any_e4m3_to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  using Int = typename Isa::Int;
  Int largest = Isa::set(0);
  int64_t i = 0;
  for (; i + Isa::kWidth <= elements; i += Isa::kWidth) {
    Int codes = Isa::load_bytes(source + i);
    Int shifted = Isa::bit_and(Isa::template shift_left<20>(codes), Isa::set(0x7f << 20));
    Int bits = Isa::as_int(Isa::mul(e4m3_value<Isa>(shifted), Isa::set_float(scale)));
    Int magnitude = Isa::bit_and(bits, Isa::set(F32::kMagnitude));
    auto nan = Isa::less_int(Isa::set(0x7e << 20), shifted);
    largest = Isa::max_u32(largest, Isa::select_int(nan, Isa::set(0x7fc00000), magnitude));
    Int sign = Isa::bit_and(Isa::template shift_left<24>(codes), Isa::set(0x80000000));
    bits = Isa::bit_xor(bits, sign);
    Int rounded = rounded_to_bf16<Isa>(Isa::as_float(bits));
    Isa::store_words(out + 2 * i, Isa::template shift_right<16>(rounded));
  }

  uint32_t rest = run_to_bf16<E4m3>(source + i, scale, elements - i, out + 2 * i);
  uint32_t main = Isa::reduce_max_u32(largest);
  return rest > main ? rest : main;
}

// Whether no magnitude of a vector of E4M3 codes is subnormal or NaN.
template <typename Isa>
SPARKFP4_INLINE bool are_finite_shifted_floats(typename Isa::Int magnitudes) {
  return !Isa::any_u8_below(Isa::sub_u8(magnitudes, Isa::set(0x01010101)), 7) &&
         !Isa::any_u8_below(Isa::sub_u8(Isa::set(kCodeMagnitude), magnitudes), 1);
}

// Such a vector, the products of which with the scale are finite.
template <typename Isa>
SPARKFP4_INLINE void shifted_e4m3_to_bf16(const unsigned char *source, typename Isa::Float scale, unsigned char *out) {
  using Int = typename Isa::Int;
  Int rounded[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    // The sign is extended to the bits between its place and the magnitude's.
    Int codes = Isa::template shift_left<20>(Isa::load_signed_bytes(source + j * Isa::kWidth));
    Int shifted = Isa::bit_and(codes, Isa::set(0x87f00000));
    rounded[j] = Isa::template shift_right<16>(rounded_to_bf16<Isa>(Isa::mul(Isa::as_float(shifted), scale)));
  }

  Isa::store_words(out, rounded[0], rounded[1]);
  Isa::store_words(out + 4 * Isa::kWidth, rounded[2], rounded[3]);
}

template <typename Isa>
static uint32_t e4m3_to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  constexpr int64_t kCodes = 4 * Isa::kWidth;
  if (!(__builtin_fabsf(scale) < kMaxShiftedScale)) {
    return any_e4m3_to_bf16<Isa>(source, scale, elements, out);
  }

  typename Isa::Float shifted_scale = Isa::set_float(scale * 0x1p120f);
  uint32_t largest = 0;
  int64_t i = 0;
  for (; i + kCodes <= elements; i += kCodes) {
    __builtin_prefetch(source + i + kPrefetch);
    if (are_finite_shifted_floats<Isa>(Isa::bit_and(Isa::load(source + i), Isa::set(kCodeMagnitude)))) {
      shifted_e4m3_to_bf16<Isa>(source + i, shifted_scale, out + 2 * i);
    } else {
      uint32_t magnitude = any_e4m3_to_bf16<Isa>(source + i, scale, kCodes, out + 2 * i);
      largest = magnitude > largest ? magnitude : largest;
    }
  }

  uint32_t rest = any_e4m3_to_bf16<Isa>(source + i, scale, elements - i, out + 2 * i);
  return rest > largest ? rest : largest;
}

template <typename Isa>
static uint32_t e4m3_runs_to_bf16(const unsigned char *source, const float *scales, int64_t run, int64_t elements,
                                  unsigned char *out) {
  return each_run<E4m3>(source, scales, run, elements, out, e4m3_to_bf16<Isa>);
}

constexpr int kGroupElements = 32;
constexpr int kGroupBytes = 16;

// As many groups of 32 nibbles as a vector has quarters of 128 bits, one a quarter: their 16 products with the scale in
// it, rounded, are two tables of bytes.
template <typename Isa, typename Type>
SPARKFP4_INLINE void groups_to_bf16(const unsigned char *source, typename Isa::Float scales, unsigned char *out) {
  using Int = typename Isa::Int;
  static constexpr float kInt4[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  static constexpr float kE2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  const float *values = Type::kSource == Int4::kSource ? kInt4 : kE2m1;
  Int products[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    typename Isa::Float four = Isa::repeat_quarter(values + 4 * j);
    products[j] = Isa::template shift_right<16>(rounded_to_bf16<Isa>(Isa::mul(four, scales)));
  }

  Int words[2] = {Isa::pack_words(products[0], products[1]), Isa::pack_words(products[2], products[3])};
  Int byte = Isa::set(0x00ff00ff);
  Int low = Isa::pack_bytes(Isa::bit_and(words[0], byte), Isa::bit_and(words[1], byte));
  Int high = Isa::pack_bytes(Isa::bit_and(Isa::template shift_right<8>(words[0]), byte),
                             Isa::bit_and(Isa::template shift_right<8>(words[1]), byte));
  Int codes = Isa::load(source);
  Int nibble = Isa::set(0x0f0f0f0f);
  Int even = Isa::bit_and(codes, nibble);
  Int odd = Isa::bit_and(Isa::template shift_right<4>(codes), nibble);
  Isa::store_interleaved(out, Isa::lookup(low, even), Isa::lookup(high, even), Isa::lookup(low, odd),
                         Isa::lookup(high, odd));
}

template <typename Isa, typename Type>
static uint32_t nibble_runs_to_bf16(const unsigned char *source, const float *scales, int64_t run, int64_t elements,
                                    unsigned char *out) {
  constexpr int kGroups = Isa::kWidth / 4;
  constexpr int kCodes = kGroups * kGroupElements;
  // Each code's product is less.
  constexpr float kMaxProduct = 8;
  if (run % kGroupElements != 0) {
    return to_bf16<Type>(source, scales, run, elements, out);
  }

  typename Isa::Float infinite = Isa::as_float(Isa::set(kRoundsToInfinity));
  uint32_t largest = 0;
  int64_t per_scale = run / kGroupElements;
  int64_t groups = elements / kGroupElements;
  int64_t group = 0;
  for (; group + kGroups <= groups; group += kGroups) {
    const unsigned char *from = source + group * kGroupBytes;
    unsigned char *to = out + group * 2 * kGroupElements;
    float shared[kGroups];
    const float *group_scales = scales + group;
    if (per_scale > 1) {
      for (int i = 0; i < kGroups; i++) {
        shared[i] = scales[(group + i) / per_scale];
      }

      group_scales = shared;
    }

    __builtin_prefetch(from + kPrefetch);
    typename Isa::Float spread = Isa::spread_quarters(group_scales);
    typename Isa::Int product = Isa::as_int(Isa::mul(spread, Isa::set_float(kMaxProduct)));
    typename Isa::Float magnitude = Isa::as_float(Isa::bit_and(product, Isa::set(F32::kMagnitude)));
    if (Isa::all(Isa::less(magnitude, infinite))) {
      groups_to_bf16<Isa, Type>(from, spread, to);
    } else {
      uint32_t found = to_bf16<Type>(from, group_scales, kGroupElements, kCodes, to);
      largest = found > largest ? found : largest;
    }
  }

  for (int64_t first = group * kGroupElements; first < elements; first += kGroupElements) {
    int64_t count = elements - first < kGroupElements ? elements - first : kGroupElements;
    uint32_t found = run_to_bf16<Type>(source + first / 2, scales[first / run], count, out + 2 * first);
    largest = found > largest ? found : largest;
  }

  return largest;
}

}  // namespace sparkfp4
