// The AVX-512 tier (F, BW, DQ, VL): 16 lanes.
#include <immintrin.h>

#include "strip.h"

namespace sparkfp4 {
namespace {

struct Avx512 {
  using Int = __m512i;
  using Float = __m512;
  static constexpr int kWidth = 16;

#define SPARKFP4_OP __attribute__((always_inline)) static inline
  SPARKFP4_OP Int set(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  SPARKFP4_OP Float set_float(float x) { return _mm512_set1_ps(x); }
  SPARKFP4_OP Int as_int(Float x) { return _mm512_castps_si512(x); }
  SPARKFP4_OP Float as_float(Int x) { return _mm512_castsi512_ps(x); }

  SPARKFP4_OP Int bit_and(Int a, Int b) { return _mm512_and_si512(a, b); }
  SPARKFP4_OP Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  SPARKFP4_OP Int add_int(Int a, Int b) { return _mm512_add_epi32(a, b); }
  SPARKFP4_OP Int sub_int(Int a, Int b) { return _mm512_sub_epi32(a, b); }
  SPARKFP4_OP Int max_u16(Int a, Int b) { return _mm512_max_epu16(a, b); }
  SPARKFP4_OP Int max_u32(Int a, Int b) { return _mm512_max_epu32(a, b); }
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
  SPARKFP4_OP Int truncate(Float x) { return _mm512_cvttps_epi32(x); }

  using Mask = __mmask16;
  SPARKFP4_OP Mask less(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  SPARKFP4_OP Mask less_equal(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
  SPARKFP4_OP Mask equal(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  SPARKFP4_OP bool all(Mask mask) { return mask == 0xffff; }
  SPARKFP4_OP Float select(Mask mask, Float a, Float b) { return _mm512_mask_mov_ps(b, mask, a); }
  SPARKFP4_OP Int select_int(Mask mask, Int a, Int b) { return _mm512_mask_mov_epi32(b, mask, a); }
  SPARKFP4_OP Int decrement_if(Mask mask, Int x) { return _mm512_mask_sub_epi32(x, mask, x, set(1)); }

  // 8 where x is negative and its magnitude passes the bound, else 0.
  SPARKFP4_OP Int signed_code_16(Int x, Int magnitude, Int bound) {
    __mmask32 negative = _mm512_mask_cmpgt_epi16_mask(_mm512_movepi16_mask(x), magnitude, bound);
    return _mm512_maskz_mov_epi16(negative, set(0x00080008));
  }

  SPARKFP4_OP Int signed_code_32(Int x, Int magnitude, Int bound) {
    __mmask16 negative = _mm512_mask_cmpgt_epi32_mask(_mm512_movepi32_mask(x), magnitude, bound);
    return _mm512_maskz_mov_epi32(negative, set(8));
  }

  SPARKFP4_OP Int count_greater_16(Int count, Int x, Int bound) {
    return _mm512_mask_add_epi16(count, _mm512_cmpgt_epi16_mask(x, bound), count, set(0x00010001));
  }

  SPARKFP4_OP Int count_greater_32(Int count, Int x, Int bound) {
    return _mm512_mask_add_epi32(count, _mm512_cmpgt_epi32_mask(x, bound), count, set(1));
  }

  SPARKFP4_OP Int multiply_pairs(Int a, Int b) { return _mm512_madd_epi16(a, b); }

  // By the low three bits of the code.
  SPARKFP4_OP Float e2m1_magnitude(Int code) {
    const Float magnitudes = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f,
                                            0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f);
    return _mm512_permutexvar_ps(code, magnitudes);
  }

  SPARKFP4_OP Float from_half(Int bits) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(bits)); }

  SPARKFP4_OP Int to_half_upwards(Float x) {
    return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  }

  SPARKFP4_OP Int load(const unsigned char *from) { return _mm512_loadu_si512(from); }

  // 16 bytes at the same place of blocks v, v + 4, v + 8 and v + 12.
  SPARKFP4_OP Int load_quarters(const unsigned char *from, int64_t block) {
    const __m128i *q0 = reinterpret_cast<const __m128i *>(from);
    const __m128i *q1 = reinterpret_cast<const __m128i *>(from + 4 * block);
    const __m128i *q2 = reinterpret_cast<const __m128i *>(from + 8 * block);
    const __m128i *q3 = reinterpret_cast<const __m128i *>(from + 12 * block);
    __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(q0)), _mm_loadu_si128(q1), 1);
    __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(q2)), _mm_loadu_si128(q3), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
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

  SPARKFP4_OP void accumulate(double *sums, Float x) {
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), low));
    _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), high));
  }
#undef SPARKFP4_OP
};

}  // namespace

const Kernel kAvx512Kernel = kernel_of<Avx512>();

}  // namespace sparkfp4
