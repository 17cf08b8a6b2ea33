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
  SPARKFP4_OP Int add_u8(Int a, Int b) { return _mm512_add_epi8(a, b); }
  SPARKFP4_OP Int sub_u8(Int a, Int b) { return _mm512_sub_epi8(a, b); }
  // 0 where b is more.
  SPARKFP4_OP Int sub_saturated(Int a, Int b) { return _mm512_subs_epu8(a, b); }
  // What is added where x is at least `from`.
  SPARKFP4_OP Int add_u8_from(Int sum, Int x, Int from, char what) {
    return _mm512_mask_add_epi8(sum, _mm512_cmpge_epu8_mask(x, from), sum, _mm512_set1_epi8(what));
  }

  SPARKFP4_OP Int keep_where_not_0(Int x, Int y) { return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(y, y), x); }
  SPARKFP4_OP bool any_0(Int x) { return _mm512_testn_epi32_mask(x, x) != 0; }
  // The highest bit of each byte is x's; it was 0 or anything.
  SPARKFP4_OP Int with_sign(Int code, Int x) { return _mm512_ternarylogic_epi32(set(0x80808080), x, code, 0xca); }

  // The high halves of bytes, a's in the low ones.
  SPARKFP4_OP Int join_high_halves(Int a, Int b) {
    return _mm512_ternarylogic_epi32(set(0x0f0f0f0f), _mm512_srli_epi16(a, 4), b, 0xca);
  }

  SPARKFP4_OP bool any_u8_below(Int x, char limit) { return _mm512_cmplt_epu8_mask(x, _mm512_set1_epi8(limit)) != 0; }
  SPARKFP4_OP Int min_u8(Int a, Int b) { return _mm512_min_epu8(a, b); }
  SPARKFP4_OP Int max_u8(Int a, Int b) { return _mm512_max_epu8(a, b); }
  SPARKFP4_OP Int max_u16(Int a, Int b) { return _mm512_max_epu16(a, b); }
  SPARKFP4_OP Int max_u32(Int a, Int b) { return _mm512_max_epu32(a, b); }
  SPARKFP4_OP Int min_u32(Int a, Int b) { return _mm512_min_epu32(a, b); }
  SPARKFP4_OP uint32_t reduce_max_u32(Int x) { return _mm512_reduce_max_epu32(x); }

  SPARKFP4_OP float reduce_min(Float x) { return _mm512_reduce_min_ps(x); }
  SPARKFP4_OP float reduce_add(Float x) { return _mm512_reduce_add_ps(x); }

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
  // 1 / x, or larger by at most 2^-12 of it.
  SPARKFP4_OP Float reciprocal_above(Float x) { return mul(_mm512_rcp14_ps(x), set_float(1 + 0x1p-13f)); }
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

  // All bytes of a lane get that one.
  template <int kByte>
  SPARKFP4_OP Int repeat_byte(Int x) {
    constexpr int kAll = kByte * 0x01010101;
    return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0c0c0c0c + kAll, 0x08080808 + kAll, 0x04040404 + kAll, kAll));
  }

  // Of each half of a quarter: the even bytes, then the odd ones.
  SPARKFP4_OP Int split_bytes(Int x) {
    return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0f0d0b09, 0x0e0c0a08, 0x07050301, 0x06040200));
  }

  SPARKFP4_OP Int reverse_bytes(Int x) {
    return _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203));
  }

  // 0x11111111 times 2^shift, 0 where that is 32: by the low four bits of each lane, an entry of the table.
  SPARKFP4_OP Int shifted_ones(const unsigned char *table, Int x) {
    Int shifts = _mm512_cvtepu8_epi32(load_quarter(table));
    return _mm512_permutexvar_epi32(x, _mm512_sllv_epi32(set(0x11111111), shifts));
  }

  // Each byte, below 16, by its entry in its own quarter's table.
  SPARKFP4_OP Int lookup(Int tables, Int x) { return _mm512_shuffle_epi8(tables, x); }

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

  // By the low four bits of each lane.
  SPARKFP4_OP Float nibble_to_float(Int x) {
    return _mm512_permutexvar_ps(x, _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  }

  // By the low four bits of each lane: the value of an INT4 code.
  SPARKFP4_OP Float int4(Int x) {
    return _mm512_permutexvar_ps(x, _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
  }

  SPARKFP4_OP Float from_half(Int bits) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)); }

  SPARKFP4_OP Int to_half_upwards(Float x) {
    return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  }

  SPARKFP4_OP Int load(const unsigned char *from) { return _mm512_loadu_si512(from); }

  SPARKFP4_OP Int load_bytes(const unsigned char *from) { return _mm512_cvtepu8_epi32(load_quarter(from)); }
  SPARKFP4_OP Int load_signed_bytes(const unsigned char *from) { return _mm512_cvtepi8_epi32(load_quarter(from)); }
  SPARKFP4_OP Float repeat_quarter(const float *from) { return _mm512_broadcast_f32x4(_mm_loadu_ps(from)); }

  // Each quarter gets one of four floats.
  SPARKFP4_OP Float spread_quarters(const float *from) {
    const Int places = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    return _mm512_permutexvar_ps(places, _mm512_castps128_ps512(_mm_loadu_ps(from)));
  }

  // Lanes below 2^16 to words, words below 2^8 to bytes; a quarter gets a's and b's.
  SPARKFP4_OP Int pack_words(Int a, Int b) { return _mm512_packus_epi32(a, b); }
  SPARKFP4_OP Int pack_bytes(Int a, Int b) { return _mm512_packus_epi16(a, b); }
  // Of the first or second half of each quarter: a byte of a, one of b.
  SPARKFP4_OP Int unpack_low(Int a, Int b) { return _mm512_unpacklo_epi8(a, b); }
  SPARKFP4_OP Int unpack_high(Int a, Int b) { return _mm512_unpackhi_epi8(a, b); }

  SPARKFP4_OP Float load_floats(const float *from) { return _mm512_loadu_ps(from); }
  SPARKFP4_OP void store_floats(float *to, Float x) { _mm512_storeu_ps(to, x); }

  SPARKFP4_OP __m128i load_quarter(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }

  // 16 bytes from each of these places, every fourth of those that are given.
  SPARKFP4_OP Int load_quarters(const unsigned char *from, const uint32_t *places) {
    Int x = _mm512_castsi128_si512(load_quarter(from + places[0]));
    x = _mm512_mask_broadcast_i32x4(x, 0x00f0, load_quarter(from + places[4]));
    x = _mm512_mask_broadcast_i32x4(x, 0x0f00, load_quarter(from + places[8]));
    return _mm512_mask_broadcast_i32x4(x, 0xf000, load_quarter(from + places[12]));
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
    Int rows[4] = {a, b, c, d};
    transpose_quarters(rows, to);
  }

  // Lane 4q + i of to[j] is lane 4q + j of from[i].
  SPARKFP4_OP void transpose_quarters(const Int *from, Int *to) {
    Int ab01 = _mm512_unpacklo_epi32(from[0], from[1]);
    Int ab23 = _mm512_unpackhi_epi32(from[0], from[1]);
    Int cd01 = _mm512_unpacklo_epi32(from[2], from[3]);
    Int cd23 = _mm512_unpackhi_epi32(from[2], from[3]);
    to[0] = _mm512_unpacklo_epi64(ab01, cd01);
    to[1] = _mm512_unpackhi_epi64(ab01, cd01);
    to[2] = _mm512_unpacklo_epi64(ab23, cd23);
    to[3] = _mm512_unpackhi_epi64(ab23, cd23);
  }

  // Lane 4q + i gets lane 4i + q.
  SPARKFP4_OP Int by_quarters(Int x) {
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x);
  }

  // Lane by lane first, second, those of lane 4q + i at place 4i + q.
  SPARKFP4_OP void store_pairs_by_quarters(unsigned char *to, Int first, Int second) {
    const Int low = _mm512_setr_epi32(0, 16, 4, 20, 8, 24, 12, 28, 1, 17, 5, 21, 9, 25, 13, 29);
    store(to, _mm512_permutex2var_epi32(first, low, second));
    store(to + 64, _mm512_permutex2var_epi32(first, _mm512_add_epi32(low, set(2)), second));
  }

  // The low bytes of four vectors, those of lane 4q + i at place 4i + q.
  SPARKFP4_OP void store_bytes_by_quarters(unsigned char *to, const Int *x) {
    Int low = set(0xff);
    Int words01 = _mm512_packus_epi32(_mm512_and_si512(x[0], low), _mm512_and_si512(x[1], low));
    Int words23 = _mm512_packus_epi32(_mm512_and_si512(x[2], low), _mm512_and_si512(x[3], low));
    Int bytes = by_quarters(_mm512_packus_epi16(words01, words23));
    store(to, _mm512_shuffle_epi8(bytes, _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400)));
  }

  // Blocks of two lanes, half of them in low: to[0] gets the first ones, to[1] the second.
  SPARKFP4_OP void split_pairs(Int low, Int high, Int *to) {
    const Int first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    to[0] = _mm512_permutex2var_epi32(low, first, high);
    to[1] = _mm512_permutex2var_epi32(low, _mm512_add_epi32(first, set(1)), high);
  }

  SPARKFP4_OP void load_pairs(const unsigned char *from, Int *to) { split_pairs(load(from), load(from + 64), to); }

  // The inverse: lane by lane first, second.
  SPARKFP4_OP void join_pairs(Int first, Int second, Int *to) {
    const Int low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const Int high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    to[0] = _mm512_permutex2var_epi32(first, low, second);
    to[1] = _mm512_permutex2var_epi32(first, high, second);
  }

  SPARKFP4_OP void store(unsigned char *to, Int x) { _mm512_storeu_si512(to, x); }

  // Lane by lane: first, second.
  SPARKFP4_OP void store_pairs(unsigned char *to, Int first, Int second) {
    Int pairs[2];
    join_pairs(first, second, pairs);
    store(to, pairs[0]);
    store(to + 64, pairs[1]);
  }

  SPARKFP4_OP void store_bytes(unsigned char *to, Int x) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm512_cvtepi32_epi8(x));
  }

  SPARKFP4_OP void store_words(unsigned char *to, Int x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), _mm512_cvtepi32_epi16(x));
  }

  // Lanes below 2^16.
  SPARKFP4_OP void store_words(unsigned char *to, Int first, Int second) {
    const Int places = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi64(places, pack_words(first, second)));
  }

  // Of each quarter the words of low and high bytes, even and odd ones in turn: 64 bytes a quarter.
  SPARKFP4_OP void store_interleaved(unsigned char *to, Int even_low, Int even_high, Int odd_low, Int odd_high) {
    Int even0 = _mm512_unpacklo_epi8(even_low, even_high);
    Int even1 = _mm512_unpackhi_epi8(even_low, even_high);
    Int odd0 = _mm512_unpacklo_epi8(odd_low, odd_high);
    Int odd1 = _mm512_unpackhi_epi8(odd_low, odd_high);
    Int a = _mm512_unpacklo_epi16(even0, odd0);
    Int b = _mm512_unpackhi_epi16(even0, odd0);
    Int c = _mm512_unpacklo_epi16(even1, odd1);
    Int d = _mm512_unpackhi_epi16(even1, odd1);
    Int ab01 = _mm512_shuffle_i64x2(a, b, 0x44);
    Int ab23 = _mm512_shuffle_i64x2(a, b, 0xee);
    Int cd01 = _mm512_shuffle_i64x2(c, d, 0x44);
    Int cd23 = _mm512_shuffle_i64x2(c, d, 0xee);
    _mm512_storeu_si512(to, _mm512_shuffle_i64x2(ab01, cd01, 0x88));
    _mm512_storeu_si512(to + 64, _mm512_shuffle_i64x2(ab01, cd01, 0xdd));
    _mm512_storeu_si512(to + 128, _mm512_shuffle_i64x2(ab23, cd23, 0x88));
    _mm512_storeu_si512(to + 192, _mm512_shuffle_i64x2(ab23, cd23, 0xdd));
  }

  SPARKFP4_OP void accumulate(double *sums, Float x) {
    // Through memory: the conversion of what is loaded takes no shuffle.
    alignas(64) float floats[16];
    _mm512_store_ps(floats, x);
    asm("" : "+m"(floats));
    __m512d low = _mm512_cvtps_pd(_mm256_load_ps(floats));
    __m512d high = _mm512_cvtps_pd(_mm256_load_ps(floats + 8));
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
