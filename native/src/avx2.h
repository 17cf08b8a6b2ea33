// The operations of AVX2, with FMA and F16C as all its processors have them: 8 lanes.
#pragma once

#include <immintrin.h>

#include "kernel.h"

namespace sparkfp4 {
namespace {

struct Avx2 {
  using Int = __m256i;
  using Float = __m256;
  static constexpr int kWidth = 8;
  static constexpr bool kSignedE2m1 = false;

#define SPARKFP4_OP __attribute__((always_inline)) static inline
  SPARKFP4_OP Int set(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  SPARKFP4_OP Float set_float(float x) { return _mm256_set1_ps(x); }
  SPARKFP4_OP Int as_int(Float x) { return _mm256_castps_si256(x); }
  SPARKFP4_OP Float as_float(Int x) { return _mm256_castsi256_ps(x); }

  SPARKFP4_OP Int bit_and(Int a, Int b) { return _mm256_and_si256(a, b); }
  SPARKFP4_OP Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  SPARKFP4_OP Int bit_xor(Int a, Int b) { return _mm256_xor_si256(a, b); }
  SPARKFP4_OP Int add_int(Int a, Int b) { return _mm256_add_epi32(a, b); }
  SPARKFP4_OP Int sub_int(Int a, Int b) { return _mm256_sub_epi32(a, b); }
  SPARKFP4_OP Int add_u8(Int a, Int b) { return _mm256_add_epi8(a, b); }
  SPARKFP4_OP Int sub_u8(Int a, Int b) { return _mm256_sub_epi8(a, b); }
  // 0 where b is more.
  SPARKFP4_OP Int sub_saturated(Int a, Int b) { return _mm256_subs_epu8(a, b); }
  // What is added where x is at least `from`.
  SPARKFP4_OP Int add_u8_from(Int sum, Int x, Int from, char what) {
    Int reached = _mm256_cmpeq_epi8(_mm256_max_epu8(x, from), x);
    return _mm256_add_epi8(sum, _mm256_and_si256(reached, _mm256_set1_epi8(what)));
  }

  SPARKFP4_OP Int keep_where_not_0(Int x, Int y) {
    return _mm256_andnot_si256(_mm256_cmpeq_epi8(y, _mm256_setzero_si256()), x);
  }

  SPARKFP4_OP bool any_0(Int x) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(x, _mm256_setzero_si256())) != 0;
  }

  // The highest bit of each byte, which was 0, is x's.
  SPARKFP4_OP Int with_sign(Int code, Int x) {
    return _mm256_or_si256(code, _mm256_and_si256(x, set(0x80808080)));
  }

  // The high halves of bytes, a's in the low ones.
  SPARKFP4_OP Int join_high_halves(Int a, Int b) {
    Int low = set(0x0f0f0f0f);
    return _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(a, 4), low), _mm256_andnot_si256(low, b));
  }


  SPARKFP4_OP bool any_u8_below(Int x, char limit) {
    Int most = _mm256_set1_epi8(static_cast<char>(limit - 1));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(x, most), x)) != 0;
  }

  SPARKFP4_OP Int min_u8(Int a, Int b) { return _mm256_min_epu8(a, b); }
  SPARKFP4_OP Int max_u8(Int a, Int b) { return _mm256_max_epu8(a, b); }
  SPARKFP4_OP Int max_u16(Int a, Int b) { return _mm256_max_epu16(a, b); }
  SPARKFP4_OP Int max_u32(Int a, Int b) { return _mm256_max_epu32(a, b); }
  SPARKFP4_OP Int min_u32(Int a, Int b) { return _mm256_min_epu32(a, b); }

  SPARKFP4_OP uint32_t reduce_max_u32(Int x) {
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    __m128i one = _mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(one));
  }

  SPARKFP4_OP float reduce_min(Float x) {
    __m128 four = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_min_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_min_ss(two, _mm_movehdup_ps(two)));
  }

  SPARKFP4_OP float reduce_add(Float x) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }

  template <int kBits>
  SPARKFP4_OP Int shift_left(Int x) {
    return _mm256_slli_epi32(x, kBits);
  }

  template <int kBits>
  SPARKFP4_OP Int shift_right(Int x) {
    return _mm256_srli_epi32(x, kBits);
  }

  SPARKFP4_OP Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  SPARKFP4_OP Float sub(Float a, Float b) { return _mm256_sub_ps(a, b); }
  SPARKFP4_OP Float mul(Float a, Float b) { return _mm256_mul_ps(a, b); }
  SPARKFP4_OP Float divide(Float a, Float b) { return _mm256_div_ps(a, b); }
  // 1 / x, or larger by at most 2^-10 of it: the estimate is within 1.5 * 2^-12.
  SPARKFP4_OP Float reciprocal_above(Float x) { return mul(_mm256_rcp_ps(x), set_float(1 + 0x1p-11f)); }
  SPARKFP4_OP Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  SPARKFP4_OP Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  SPARKFP4_OP Float mul_add(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  // c - a * b
  SPARKFP4_OP Float sub_mul(Float c, Float a, Float b) { return _mm256_fnmadd_ps(a, b, c); }
  SPARKFP4_OP Float abs(Float x) { return as_float(bit_and(as_int(x), set(0x7fffffff))); }
  SPARKFP4_OP Float round(Float x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  SPARKFP4_OP Int truncate(Float x) { return _mm256_cvttps_epi32(x); }

  // 1 / x but for its last bit.
  SPARKFP4_OP Float reciprocal(Float x) { return divide(set_float(1.0f), x); }
  SPARKFP4_OP Float to_float(Int x) { return _mm256_cvtepi32_ps(x); }

  // All ones where true.
  using Mask = __m256;
  SPARKFP4_OP Mask less(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  SPARKFP4_OP Mask less_equal(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  SPARKFP4_OP Mask equal(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  // Of integers below 2^31.
  SPARKFP4_OP Mask less_int(Int a, Int b) { return as_float(_mm256_cmpgt_epi32(b, a)); }
  SPARKFP4_OP Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
  SPARKFP4_OP Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
  SPARKFP4_OP uint32_t lanes(Mask mask) { return static_cast<uint32_t>(_mm256_movemask_ps(mask)); }
  SPARKFP4_OP bool all(Mask mask) { return _mm256_movemask_ps(mask) == 0xff; }
  SPARKFP4_OP Float select(Mask mask, Float a, Float b) { return _mm256_blendv_ps(b, a, mask); }

  SPARKFP4_OP Int select_int(Mask mask, Int a, Int b) { return as_int(select(mask, as_float(a), as_float(b))); }

  SPARKFP4_OP Int decrement_if(Mask mask, Int x) { return _mm256_add_epi32(x, as_int(mask)); }

  // The codes of bytes, words or lanes of this magnitude: how many thresholds it passes, and the sign.
  SPARKFP4_OP Int code_8(Int x, Int magnitude, const Int *bits) {
    Int negative = _mm256_and_si256(x, _mm256_cmpgt_epi8(magnitude, bits[0]));
    Int code = _mm256_and_si256(_mm256_srli_epi16(negative, 4), set(0x08080808));
#pragma GCC unroll 8
    for (int i = 1; i < 8; i++) {
      code = _mm256_sub_epi8(code, _mm256_cmpgt_epi8(magnitude, bits[i]));
    }

    return code;
  }

  SPARKFP4_OP Int code_16(Int x, Int magnitude, const Int *bits) {
    Int negative = _mm256_and_si256(x, _mm256_cmpgt_epi16(magnitude, bits[0]));
    Int code = _mm256_and_si256(_mm256_srli_epi16(negative, 12), set(0x00080008));
#pragma GCC unroll 8
    for (int i = 1; i < 8; i++) {
      code = _mm256_sub_epi16(code, _mm256_cmpgt_epi16(magnitude, bits[i]));
    }

    return code;
  }

  SPARKFP4_OP Int code_32(Int x, Int magnitude, const Int *bits) {
    Int negative = _mm256_and_si256(x, _mm256_cmpgt_epi32(magnitude, bits[0]));
    Int code = _mm256_and_si256(_mm256_srli_epi32(negative, 28), set(8));
#pragma GCC unroll 8
    for (int i = 1; i < 8; i++) {
      code = _mm256_sub_epi32(code, _mm256_cmpgt_epi32(magnitude, bits[i]));
    }

    return code;
  }

  // Both words of a lane get its high, or its low one.
  SPARKFP4_OP Int duplicate_high(Int x) {
    return _mm256_shuffle_epi8(x, _mm256_setr_epi32(0x03020302, 0x07060706, 0x0b0a0b0a, 0x0f0e0f0e,
                                                    0x03020302, 0x07060706, 0x0b0a0b0a, 0x0f0e0f0e));
  }

  SPARKFP4_OP Int duplicate_low(Int x) {
    return _mm256_shuffle_epi8(x, _mm256_setr_epi32(0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c,
                                                    0x01000100, 0x05040504, 0x09080908, 0x0d0c0d0c));
  }

  // All bytes of a lane get its lowest.
  SPARKFP4_OP Int duplicate_byte(Int x) {
    return _mm256_shuffle_epi8(x, _mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c,
                                                    0, 0x04040404, 0x08080808, 0x0c0c0c0c));
  }

  // All bytes of a lane get that one.
  template <int kByte>
  SPARKFP4_OP Int repeat_byte(Int x) {
    constexpr int kAll = kByte * 0x01010101;
    return _mm256_shuffle_epi8(x, _mm256_setr_epi32(kAll, 0x04040404 + kAll, 0x08080808 + kAll, 0x0c0c0c0c + kAll,
                                                    kAll, 0x04040404 + kAll, 0x08080808 + kAll, 0x0c0c0c0c + kAll));
  }

  // Of each half of a half: the even bytes, then the odd ones.
  SPARKFP4_OP Int split_bytes(Int x) {
    return _mm256_shuffle_epi8(x, _mm256_setr_epi32(0x06040200, 0x07050301, 0x0e0c0a08, 0x0f0d0b09,
                                                    0x06040200, 0x07050301, 0x0e0c0a08, 0x0f0d0b09));
  }

  SPARKFP4_OP Int reverse_bytes(Int x) {
    return _mm256_shuffle_epi8(x, _mm256_setr_epi32(0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f,
                                                    0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f));
  }

  // 0x11111111 times 2^shift, 0 where that is 32: by each lane, below 16, an entry of the table, whose first one is 0.
  SPARKFP4_OP Int shifted_ones(const unsigned char *table, Int x) {
    return _mm256_sllv_epi32(set(0x11111111), lookup(table, x));
  }

  // Each byte, below 16, by its entry in its own half's table.
  SPARKFP4_OP Int lookup(Int tables, Int x) { return _mm256_shuffle_epi8(tables, x); }

  // Each byte, below 16, by its entry in the table.
  SPARKFP4_OP Int lookup(const unsigned char *table, Int x) {
    __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i *>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), x);
  }

  SPARKFP4_OP Int multiply_byte_pairs(Int a, Int b) { return _mm256_maddubs_epi16(a, b); }
  SPARKFP4_OP Int multiply_pairs(Int a, Int b) { return _mm256_madd_epi16(a, b); }

  // Without the sign: by the low three bits of each lane.
  SPARKFP4_OP Float e2m1(Int code) {
    return _mm256_permutevar8x32_ps(_mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f), code);
  }

  SPARKFP4_OP Float e2m1_magnitude(Int code) { return e2m1(code); }

  // The E2M1 value next to x / 4 >= 0. Within an octave from 1 on, as below 2, the values are evenly spaced, and the sum
  // with a number of that spacing rounds to them.
  template <bool kClamp>
  SPARKFP4_OP Float nearest_of_quarters(Float x) {
    x = min(x, set_float(24.0f));
    Int octave = _mm256_max_epi32(bit_and(as_int(x), set(0x7f800000)), set(0x40800000));
    Float spacing = as_float(add_int(octave, set(0x0b400000)));
    return mul(sub(add(x, spacing), spacing), set_float(0.25f));
  }

  // By the low four bits of each lane.
  SPARKFP4_OP Float nibble_to_float(Int x) { return to_float(_mm256_and_si256(x, set(0xf))); }

  // By the low four bits of each lane: the value of an INT4 code without its sign.
  SPARKFP4_OP Float int4(Int x) { return abs(sub(nibble_to_float(x), set_float(8.0f))); }

  SPARKFP4_OP Float from_half(Int bits) {
    Int low = _mm256_and_si256(bits, set(0xffff));
    Int twice = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0xd8);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(twice));
  }

  SPARKFP4_OP Int to_half_upwards(Float x) {
    return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  }

  SPARKFP4_OP Int load(const unsigned char *from) { return _mm256_loadu_si256(reinterpret_cast<const Int *>(from)); }

  SPARKFP4_OP Int load_bytes(const unsigned char *from) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
  }

  SPARKFP4_OP Int load_signed_bytes(const unsigned char *from) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(from)));
  }

  SPARKFP4_OP Float repeat_quarter(const float *from) {
    return _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(from));
  }

  // Each half gets one of two floats.
  SPARKFP4_OP Float spread_quarters(const float *from) {
    return _mm256_setr_m128(_mm_broadcast_ss(from), _mm_broadcast_ss(from + 1));
  }

  // Lanes below 2^16 to words, words below 2^8 to bytes; a half gets a's and b's.
  SPARKFP4_OP Int pack_words(Int a, Int b) { return _mm256_packus_epi32(a, b); }
  SPARKFP4_OP Int pack_bytes(Int a, Int b) { return _mm256_packus_epi16(a, b); }
  // Of the first or second half of each half: a byte of a, one of b.
  SPARKFP4_OP Int unpack_low(Int a, Int b) { return _mm256_unpacklo_epi8(a, b); }
  SPARKFP4_OP Int unpack_high(Int a, Int b) { return _mm256_unpackhi_epi8(a, b); }

  SPARKFP4_OP Float load_floats(const float *from) { return _mm256_loadu_ps(from); }
  SPARKFP4_OP void store_floats(float *to, Float x) { _mm256_storeu_ps(to, x); }

  // 16 bytes from each of these places, every fourth of those that are given.
  SPARKFP4_OP Int load_quarters(const unsigned char *from, const uint32_t *places) {
    const __m128i *low = reinterpret_cast<const __m128i *>(from + places[0]);
    const __m128i *high = reinterpret_cast<const __m128i *>(from + places[4]);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1);
  }

  // 16 bytes at the same place of blocks v and v + 4.
  SPARKFP4_OP Int load_halves(const unsigned char *from, int64_t block) {
    const __m128i *low = reinterpret_cast<const __m128i *>(from);
    const __m128i *high = reinterpret_cast<const __m128i *>(from + 4 * block);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1);
  }

  // Four lanes of each block, which lie 16 bytes wide at from, from + block and so on: to[i] gets the i-th of them.
  SPARKFP4_OP void load_transposed(const unsigned char *from, int64_t block, Int *to) {
    Int a = load_halves(from, block);
    Int b = load_halves(from + block, block);
    Int c = load_halves(from + 2 * block, block);
    Int d = load_halves(from + 3 * block, block);
    Int rows[4] = {a, b, c, d};
    transpose_quarters(rows, to);
  }

  // Of halves: lane 4q + i of to[j] is lane 4q + j of from[i].
  SPARKFP4_OP void transpose_quarters(const Int *from, Int *to) {
    Int ab01 = _mm256_unpacklo_epi32(from[0], from[1]);
    Int ab23 = _mm256_unpackhi_epi32(from[0], from[1]);
    Int cd01 = _mm256_unpacklo_epi32(from[2], from[3]);
    Int cd23 = _mm256_unpackhi_epi32(from[2], from[3]);
    to[0] = _mm256_unpacklo_epi64(ab01, cd01);
    to[1] = _mm256_unpackhi_epi64(ab01, cd01);
    to[2] = _mm256_unpacklo_epi64(ab23, cd23);
    to[3] = _mm256_unpackhi_epi64(ab23, cd23);
  }

  // Lane 4q + i gets lane 2i + q.
  SPARKFP4_OP Int by_quarters(Int x) {
    return _mm256_permutevar8x32_epi32(x, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  }

  // Lane by lane first, second, those of lane 4q + i at place 2i + q.
  SPARKFP4_OP void store_pairs_by_quarters(unsigned char *to, Int first, Int second) {
    store(to, _mm256_permute4x64_epi64(_mm256_unpacklo_epi32(first, second), 0xd8));
    store(to + 32, _mm256_permute4x64_epi64(_mm256_unpackhi_epi32(first, second), 0xd8));
  }

  // The low bytes of four vectors, those of lane 4q + i at place 2i + q.
  SPARKFP4_OP void store_bytes_by_quarters(unsigned char *to, const Int *x) {
    Int low = set(0xff);
    Int words01 = _mm256_packus_epi32(_mm256_and_si256(x[0], low), _mm256_and_si256(x[1], low));
    Int words23 = _mm256_packus_epi32(_mm256_and_si256(x[2], low), _mm256_and_si256(x[3], low));
    // Of each half the four bytes of each vector: those of the other half belong between them.
    Int bytes = _mm256_packus_epi16(words01, words23);
    __m128i first = _mm256_castsi256_si128(bytes);
    __m128i second = _mm256_extracti128_si256(bytes, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), _mm_unpacklo_epi8(first, second));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to + 16), _mm_unpackhi_epi8(first, second));
  }

  // Blocks of two lanes, half of them in low: to[0] gets the first ones, to[1] the second.
  SPARKFP4_OP void split_pairs(Int low, Int high, Int *to) {
    Float first = _mm256_shuffle_ps(as_float(low), as_float(high), 0x88);
    Float second = _mm256_shuffle_ps(as_float(low), as_float(high), 0xdd);
    to[0] = _mm256_permute4x64_epi64(as_int(first), 0xd8);
    to[1] = _mm256_permute4x64_epi64(as_int(second), 0xd8);
  }

  SPARKFP4_OP void load_pairs(const unsigned char *from, Int *to) { split_pairs(load(from), load(from + 32), to); }

  // The inverse: lane by lane first, second.
  SPARKFP4_OP void join_pairs(Int first, Int second, Int *to) {
    Int even = _mm256_unpacklo_epi32(first, second);
    Int odd = _mm256_unpackhi_epi32(first, second);
    to[0] = _mm256_permute2x128_si256(even, odd, 0x20);
    to[1] = _mm256_permute2x128_si256(even, odd, 0x31);
  }

  SPARKFP4_OP void store(unsigned char *to, Int x) { _mm256_storeu_si256(reinterpret_cast<Int *>(to), x); }

  SPARKFP4_OP void store_pairs(unsigned char *to, Int first, Int second) {
    Int pairs[2];
    join_pairs(first, second, pairs);
    store(to, pairs[0]);
    store(to + 32, pairs[1]);
  }

  SPARKFP4_OP void store_bytes(unsigned char *to, Int x) {
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(to), _mm_packus_epi16(words, words));
  }

  SPARKFP4_OP void store_words(unsigned char *to, Int x) {
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(to), words);
  }

  // Lanes below 2^16.
  SPARKFP4_OP void store_words(unsigned char *to, Int first, Int second) {
    _mm256_storeu_si256(reinterpret_cast<Int *>(to), _mm256_permute4x64_epi64(pack_words(first, second), 0xd8));
  }

  // Of each half the words of low and high bytes, even and odd ones in turn: 64 bytes a half.
  SPARKFP4_OP void store_interleaved(unsigned char *to, Int even_low, Int even_high, Int odd_low, Int odd_high) {
    Int even0 = _mm256_unpacklo_epi8(even_low, even_high);
    Int even1 = _mm256_unpackhi_epi8(even_low, even_high);
    Int odd0 = _mm256_unpacklo_epi8(odd_low, odd_high);
    Int odd1 = _mm256_unpackhi_epi8(odd_low, odd_high);
    Int a = _mm256_unpacklo_epi16(even0, odd0);
    Int b = _mm256_unpackhi_epi16(even0, odd0);
    Int c = _mm256_unpacklo_epi16(even1, odd1);
    Int d = _mm256_unpackhi_epi16(even1, odd1);
    Int *vectors = reinterpret_cast<Int *>(to);
    _mm256_storeu_si256(vectors, _mm256_permute2x128_si256(a, b, 0x20));
    _mm256_storeu_si256(vectors + 1, _mm256_permute2x128_si256(c, d, 0x20));
    _mm256_storeu_si256(vectors + 2, _mm256_permute2x128_si256(a, b, 0x31));
    _mm256_storeu_si256(vectors + 3, _mm256_permute2x128_si256(c, d, 0x31));
  }

  SPARKFP4_OP void accumulate(double *sums, Float x) {
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), low));
    _mm256_storeu_pd(sums + 4, _mm256_add_pd(_mm256_loadu_pd(sums + 4), high));
  }

  // The squares of 16 blocks of 16 E2M1 codes, two blocks an E8M0 scale, to the lanes.
  SPARKFP4_OP void add_squares(const unsigned char *codes, const unsigned char *scales, double *lanes) {
    const Int quarters = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 9, 16, 36, 64, static_cast<char>(144),
                                                                   0, 1, 4, 9, 16, 36, 64, static_cast<char>(144)));
    for (int i = 0; i < 4; i++) {
      Int x = load(codes + 32 * i);
      Int even = _mm256_shuffle_epi8(quarters, _mm256_and_si256(x, set(0x0f0f0f0f)));
      Int odd = _mm256_shuffle_epi8(quarters, _mm256_and_si256(_mm256_srli_epi16(x, 4), set(0x0f0f0f0f)));
      Int zero = _mm256_setzero_si256();
      Int sums = _mm256_add_epi64(_mm256_sad_epu8(even, zero), _mm256_sad_epu8(odd, zero));
      // The low halves of the four sums.
      Int low = _mm256_permutevar8x32_epi32(sums, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
      // 2^(2k - 2), from s = k + 127.
      int64_t first = scales[2 * i];
      int64_t second = scales[2 * i + 1];
      Int exponents = _mm256_setr_epi64x(first, first, second, second);
      Int biased = _mm256_add_epi64(_mm256_add_epi64(exponents, exponents), _mm256_set1_epi64x(1023 - 2 * 127 - 2));
      __m256d factor = _mm256_castsi256_pd(_mm256_slli_epi64(biased, 52));
      __m256d scaled = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(low)), factor);
      _mm256_storeu_pd(lanes + 4 * i, _mm256_add_pd(_mm256_loadu_pd(lanes + 4 * i), scaled));
    }
  }
#undef SPARKFP4_OP
};

}  // namespace
}  // namespace sparkfp4
