// The operations of AVX-512 (F, BW, DQ, VL): 16 lanes.
#pragma once

#include <immintrin.h>

#include "kernel.h"

namespace sparkfp4 {
namespace {

struct Avx512 {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kWidth = 16;
  static constexpr bool kSignedE2m1 = true;

#define SPARKFP4_OP __attribute__((always_inline)) static inline
  SPARKFP4_OP Int set(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  SPARKFP4_OP Float set_float(float x) { return _mm512_set1_ps(x); }
  SPARKFP4_OP Int as_int(Float x) { return _mm512_castps_si512(x); }
  SPARKFP4_OP Float as_float(Int x) { return _mm512_castsi512_ps(x); }

  SPARKFP4_OP Int bit_and(Int a, Int b) { return _mm512_and_si512(a, b); }
  SPARKFP4_OP Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  SPARKFP4_OP Int bit_xor(Int a, Int b) { return _mm512_xor_si512(a, b); }
  SPARKFP4_OP Int add_int(Int a, Int b) { return _mm512_add_epi32(a, b); }
  SPARKFP4_OP Int sub_int(Int a, Int b) { return _mm512_sub_epi32(a, b); }
  SPARKFP4_OP Int max_u8(Int a, Int b) { return _mm512_max_epu8(a, b); }
  SPARKFP4_OP Int max_u16(Int a, Int b) { return _mm512_max_epu16(a, b); }
  SPARKFP4_OP Int max_u32(Int a, Int b) { return _mm512_max_epu32(a, b); }
  SPARKFP4_OP Int min_u32(Int a, Int b) { return _mm512_min_epu32(a, b); }
  SPARKFP4_OP uint32_t reduce_max_u32(Int x) { return _mm512_reduce_max_epu32(x); }

  template <int kBits>
  SPARKFP4_OP Int shift_left(Int x) {
    return _mm512_slli_epi32(x, kBits);
  }

  template <int kBits>
  SPARKFP4_OP Int shift_right(Int x) {
    return _mm512_srli_epi32(x, kBits);
  }

  SPARKFP4_OP Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  SPARKFP4_OP Float sub(Float a, Float b) { return _mm512_sub_ps(a, b); }
  SPARKFP4_OP Float mul(Float a, Float b) { return _mm512_mul_ps(a, b); }
  SPARKFP4_OP Float divide(Float a, Float b) { return _mm512_div_ps(a, b); }
  SPARKFP4_OP Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  SPARKFP4_OP Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  SPARKFP4_OP Float mul_add(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  // c - a * b
  SPARKFP4_OP Float sub_mul(Float c, Float a, Float b) { return _mm512_fnmadd_ps(a, b, c); }
  SPARKFP4_OP Float abs(Float x) { return _mm512_abs_ps(x); }
  SPARKFP4_OP Float round(Float x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  SPARKFP4_OP Int truncate(Float x) { return _mm512_cvttps_epi32(x); }

  // 1 / x but for its last bit.
  SPARKFP4_OP Float reciprocal(Float x) {
    Float near = _mm512_rcp14_ps(x);
    return mul_add(near, sub_mul(set_float(1.0f), x, near), near);
  }
  SPARKFP4_OP Float to_float(Int x) { return _mm512_cvtepi32_ps(x); }

  using Mask = __mmask16;
  SPARKFP4_OP Mask less(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  SPARKFP4_OP Mask less_equal(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  SPARKFP4_OP Mask equal(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  SPARKFP4_OP Mask less_int(Int a, Int b) { return _mm512_cmplt_epi32_mask(a, b); }
  SPARKFP4_OP Mask both(Mask a, Mask b) { return a & b; }
  SPARKFP4_OP Mask either(Mask a, Mask b) { return a | b; }
  SPARKFP4_OP uint32_t lanes(Mask mask) { return mask; }
  SPARKFP4_OP bool all(Mask mask) { return mask == 0xffff; }
  SPARKFP4_OP Float select(Mask mask, Float a, Float b) { return _mm512_mask_mov_ps(b, mask, a); }
  SPARKFP4_OP Int select_int(Mask mask, Int a, Int b) { return _mm512_mask_mov_epi32(b, mask, a); }
  SPARKFP4_OP Int decrement_if(Mask mask, Int x) { return _mm512_mask_sub_epi32(x, mask, x, set(1)); }

  // The codes of bytes, words or lanes of this magnitude: bits 2, 1 and 0 by a search among the thresholds, then the
  // sign.
  SPARKFP4_OP Int code_8(Int x, Int magnitude, const Int *bits) {
    __mmask64 bit2 = _mm512_cmpgt_epu8_mask(magnitude, bits[4]);
    __mmask64 bit1 = _mm512_cmpgt_epu8_mask(magnitude, _mm512_mask_mov_epi8(bits[2], bit2, bits[6]));
    Int below = _mm512_mask_mov_epi8(bits[1], bit2, bits[5]);
    Int above = _mm512_mask_mov_epi8(bits[3], bit2, bits[7]);
    __mmask64 bit0 = _mm512_cmpgt_epu8_mask(magnitude, _mm512_mask_mov_epi8(below, bit1, above));
    __mmask64 sign = _mm512_mask_cmpgt_epu8_mask(_mm512_movepi8_mask(x), magnitude, bits[0]);
    Int code = _mm512_maskz_mov_epi8(bit2, set(0x04040404));
    code = _mm512_mask_add_epi8(code, bit1, code, set(0x02020202));
    code = _mm512_mask_add_epi8(code, bit0, code, set(0x01010101));
    return _mm512_mask_add_epi8(code, sign, code, set(0x08080808));
  }

  SPARKFP4_OP Int code_16(Int x, Int magnitude, const Int *bits) {
    __mmask32 bit2 = _mm512_cmpgt_epi16_mask(magnitude, bits[4]);
    __mmask32 bit1 = _mm512_cmpgt_epi16_mask(magnitude, _mm512_mask_mov_epi16(bits[2], bit2, bits[6]));
    Int below = _mm512_mask_mov_epi16(bits[1], bit2, bits[5]);
    Int above = _mm512_mask_mov_epi16(bits[3], bit2, bits[7]);
    __mmask32 bit0 = _mm512_cmpgt_epi16_mask(magnitude, _mm512_mask_mov_epi16(below, bit1, above));
    __mmask32 sign = _mm512_mask_cmpgt_epi16_mask(_mm512_movepi16_mask(x), magnitude, bits[0]);
    Int code = _mm512_maskz_mov_epi16(bit2, set(0x00040004));
    code = _mm512_mask_add_epi16(code, bit1, code, set(0x00020002));
    code = _mm512_mask_add_epi16(code, bit0, code, set(0x00010001));
    return _mm512_mask_add_epi16(code, sign, code, set(0x00080008));
  }

  SPARKFP4_OP Int code_32(Int x, Int magnitude, const Int *bits) {
    __mmask16 bit2 = _mm512_cmpgt_epi32_mask(magnitude, bits[4]);
    __mmask16 bit1 = _mm512_cmpgt_epi32_mask(magnitude, _mm512_mask_mov_epi32(bits[2], bit2, bits[6]));
    Int below = _mm512_mask_mov_epi32(bits[1], bit2, bits[5]);
    Int above = _mm512_mask_mov_epi32(bits[3], bit2, bits[7]);
    __mmask16 bit0 = _mm512_cmpgt_epi32_mask(magnitude, _mm512_mask_mov_epi32(below, bit1, above));
    __mmask16 sign = _mm512_mask_cmpgt_epi32_mask(_mm512_movepi32_mask(x), magnitude, bits[0]);
    Int code = _mm512_maskz_mov_epi32(bit2, set(4));
    code = _mm512_mask_add_epi32(code, bit1, code, set(2));
    code = _mm512_mask_add_epi32(code, bit0, code, set(1));
    return _mm512_mask_add_epi32(code, sign, code, set(8));
  }

  // Both words of a lane get its high, or its low one.
  SPARKFP4_OP Int duplicate_high(Int x) {
    return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0f0e0f0e, 0x0b0a0b0a, 0x07060706, 0x03020302));
  }

  SPARKFP4_OP Int duplicate_low(Int x) {
    return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0d0c0d0c, 0x09080908, 0x05040504, 0x01000100));
  }

  // All bytes of a lane get its lowest.
  SPARKFP4_OP Int duplicate_byte(Int x) {
    return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
  }

  // Each byte, below 16, by its entry in the table.
  SPARKFP4_OP Int lookup(const unsigned char *table, Int x) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_quarter(table)), x);
  }

  SPARKFP4_OP Int multiply_byte_pairs(Int a, Int b) { return _mm512_maddubs_epi16(a, b); }
  SPARKFP4_OP Int multiply_pairs(Int a, Int b) { return _mm512_madd_epi16(a, b); }

  // By the low four bits of each lane.
  SPARKFP4_OP Float e2m1(Int code) {
    const Float values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f,
                                        -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f);
    return _mm512_permutexvar_ps(code, values);
  }

  // Without the sign: by the low three bits of each lane; the fourth may be anything.
  SPARKFP4_OP Float e2m1_magnitude(Int code) {
    const Float values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f,
                                        0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    return _mm512_permutexvar_ps(code, values);
  }

  // The E2M1 value next to x / 4 >= 0; x is below 32 or kClamp is true.
  template <bool kClamp>
  SPARKFP4_OP Float nearest_of_quarters(Float x) {
    const Float low = _mm512_setr_ps(0.0f, 0.5f, 0.5f, 1.0f, 1.0f, 1.5f, 1.5f, 2.0f,
                                     2.0f, 2.0f, 3.0f, 3.0f, 3.0f, 3.0f, 4.0f, 4.0f);
    const Float high = _mm512_setr_ps(4.0f, 4.0f, 4.0f, 4.0f, 6.0f, 6.0f, 6.0f, 6.0f,
                                      6.0f, 6.0f, 6.0f, 6.0f, 6.0f, 6.0f, 6.0f, 6.0f);
    return _mm512_permutex2var_ps(low, truncate(kClamp ? min(x, set_float(31.0f)) : x), high);
  }

  SPARKFP4_OP Float from_half(Int bits) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)); }

  SPARKFP4_OP Int to_half_upwards(Float x) {
    return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  }

  SPARKFP4_OP Int load(const unsigned char *from) { return _mm512_loadu_si512(from); }

  SPARKFP4_OP Int load_bytes(const unsigned char *from) { return _mm512_cvtepu8_epi32(load_quarter(from)); }
  SPARKFP4_OP Float load_floats(const float *from) { return _mm512_loadu_ps(from); }
  SPARKFP4_OP void store_floats(float *to, Float x) { _mm512_storeu_ps(to, x); }

  SPARKFP4_OP __m128i load_quarter(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }

  // 16 bytes at the same place of blocks v, v + 4, v + 8 and v + 12.
  SPARKFP4_OP Int load_quarters(const unsigned char *from, int64_t block) {
    Int x = _mm512_castsi128_si512(load_quarter(from));
    x = _mm512_mask_broadcast_i32x4(x, 0x00f0, load_quarter(from + 4 * block));
    x = _mm512_mask_broadcast_i32x4(x, 0x0f00, load_quarter(from + 8 * block));
    return _mm512_mask_broadcast_i32x4(x, 0xf000, load_quarter(from + 12 * block));
  }

  // Four lanes of each block, which lie 16 bytes wide at from, from + block and so on: to[i] gets the i-th of them.
  SPARKFP4_OP void load_transposed(const unsigned char *from, int64_t block, Int *to) {
    Int a = load_quarters(from, block);
    Int b = load_quarters(from + block, block);
    Int c = load_quarters(from + 2 * block, block);
    Int d = load_quarters(from + 3 * block, block);
    Int ab01 = _mm512_unpacklo_epi32(a, b);
    Int ab23 = _mm512_unpackhi_epi32(a, b);
    Int cd01 = _mm512_unpacklo_epi32(c, d);
    Int cd23 = _mm512_unpackhi_epi32(c, d);
    to[0] = _mm512_unpacklo_epi64(ab01, cd01);
    to[1] = _mm512_unpackhi_epi64(ab01, cd01);
    to[2] = _mm512_unpacklo_epi64(ab23, cd23);
    to[3] = _mm512_unpackhi_epi64(ab23, cd23);
  }

  // Blocks of two lanes: to[0] gets the first ones, to[1] the second.
  SPARKFP4_OP void load_pairs(const unsigned char *from, Int *to) {
    Int low = load(from);
    Int high = load(from + 64);
    const Int first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    to[0] = _mm512_permutex2var_epi32(low, first, high);
    to[1] = _mm512_permutex2var_epi32(low, _mm512_add_epi32(first, set(1)), high);
  }

  // Lane by lane: first, second.
  SPARKFP4_OP void store_pairs(unsigned char *to, Int first, Int second) {
    Int even = _mm512_unpacklo_epi32(first, second);
    Int odd = _mm512_unpackhi_epi32(first, second);
    const Int low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const Int high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(even, low, odd));
    _mm512_storeu_si512(to + 64, _mm512_permutex2var_epi64(even, high, odd));
  }

  SPARKFP4_OP void store_bytes(unsigned char *to, Int x) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm512_cvtepi32_epi8(x));
  }

  SPARKFP4_OP void store_words(unsigned char *to, Int x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), _mm512_cvtepi32_epi16(x));
  }

  SPARKFP4_OP void accumulate(double *sums, Float x) {
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), low));
    _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), high));
  }

  // The squares of 16 blocks of 16 E2M1 codes, two blocks an E8M0 scale, to the lanes.
  SPARKFP4_OP void add_squares(const unsigned char *codes, const unsigned char *scales, double *lanes) {
    const Int quarters = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 4, 9, 16, 36, 64, static_cast<char>(144),
                                                              0, 1, 4, 9, 16, 36, 64, static_cast<char>(144)));
    // 2^(2k - 2), from s = k + 127.
    Int exponents = _mm512_cvtepu8_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(scales)));
    Int biased = _mm512_add_epi64(_mm512_add_epi64(exponents, exponents), _mm512_set1_epi64(1023 - 2 * 127 - 2));
    Int factors = _mm512_slli_epi64(biased, 52);
    const Int low = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const Int high = _mm512_setr_epi64(4, 4, 5, 5, 6, 6, 7, 7);
    for (int i = 0; i < 2; i++) {
      Int x = load(codes + 64 * i);
      Int even = _mm512_shuffle_epi8(quarters, _mm512_and_si512(x, set(0x0f0f0f0f)));
      Int odd = _mm512_shuffle_epi8(quarters, _mm512_and_si512(_mm512_srli_epi16(x, 4), set(0x0f0f0f0f)));
      Int zero = _mm512_setzero_si512();
      Int sums = _mm512_add_epi64(_mm512_sad_epu8(even, zero), _mm512_sad_epu8(odd, zero));
      __m512d factor = _mm512_castsi512_pd(_mm512_permutexvar_epi64(i == 0 ? low : high, factors));
      __m512d scaled = _mm512_mul_pd(_mm512_cvtepi64_pd(sums), factor);
      _mm512_storeu_pd(lanes + 8 * i, _mm512_add_pd(_mm512_loadu_pd(lanes + 8 * i), scaled));
    }
  }
#undef SPARKFP4_OP
};

}  // namespace
}  // namespace sparkfp4
