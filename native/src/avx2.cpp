// The AVX2 tier, with FMA and F16C as all its processors have them: 8 lanes.
#include <immintrin.h>

#include "strip.h"

namespace sparkfp4 {
namespace {

struct Avx2 {
  using Int = __m256i;
  using Float = __m256;
  static constexpr int kWidth = 8;

#define SPARKFP4_OP __attribute__((always_inline)) static inline
  SPARKFP4_OP Int set(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  SPARKFP4_OP Float set_float(float x) { return _mm256_set1_ps(x); }
  SPARKFP4_OP Int as_int(Float x) { return _mm256_castps_si256(x); }
  SPARKFP4_OP Float as_float(Int x) { return _mm256_castsi256_ps(x); }

  SPARKFP4_OP Int bit_and(Int a, Int b) { return _mm256_and_si256(a, b); }
  SPARKFP4_OP Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  SPARKFP4_OP Int add_int(Int a, Int b) { return _mm256_add_epi32(a, b); }
  SPARKFP4_OP Int sub_int(Int a, Int b) { return _mm256_sub_epi32(a, b); }
  SPARKFP4_OP Int max_u16(Int a, Int b) { return _mm256_max_epu16(a, b); }
  SPARKFP4_OP Int max_u32(Int a, Int b) { return _mm256_max_epu32(a, b); }

  SPARKFP4_OP uint32_t reduce_max_u32(Int x) {
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    __m128i one = _mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1));
    return static_cast<uint32_t>(_mm_cvtsi128_si32(one));
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
  SPARKFP4_OP Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  SPARKFP4_OP Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  SPARKFP4_OP Float mul_add(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  // c - a * b
  SPARKFP4_OP Float sub_mul(Float c, Float a, Float b) { return _mm256_fnmadd_ps(a, b, c); }
  SPARKFP4_OP Int truncate(Float x) { return _mm256_cvttps_epi32(x); }

  // All ones where true.
  using Mask = __m256;
  SPARKFP4_OP Mask less(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  SPARKFP4_OP Mask less_equal(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
  SPARKFP4_OP Mask equal(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  SPARKFP4_OP bool all(Mask mask) { return _mm256_movemask_ps(mask) == 0xff; }
  SPARKFP4_OP Float select(Mask mask, Float a, Float b) { return _mm256_blendv_ps(b, a, mask); }

  SPARKFP4_OP Int select_int(Mask mask, Int a, Int b) { return as_int(select(mask, as_float(a), as_float(b))); }

  SPARKFP4_OP Int decrement_if(Mask mask, Int x) { return _mm256_add_epi32(x, as_int(mask)); }

  // 8 where x is negative and its magnitude passes the bound, else 0.
  SPARKFP4_OP Int signed_code_16(Int x, Int magnitude, Int bound) {
    Int negative = _mm256_and_si256(x, _mm256_cmpgt_epi16(magnitude, bound));
    return _mm256_and_si256(_mm256_srli_epi16(negative, 12), set(0x00080008));
  }

  SPARKFP4_OP Int signed_code_32(Int x, Int magnitude, Int bound) {
    Int negative = _mm256_and_si256(x, _mm256_cmpgt_epi32(magnitude, bound));
    return _mm256_and_si256(_mm256_srli_epi32(negative, 28), set(8));
  }

  SPARKFP4_OP Int count_greater_16(Int count, Int x, Int bound) {
    return _mm256_sub_epi16(count, _mm256_cmpgt_epi16(x, bound));
  }

  SPARKFP4_OP Int count_greater_32(Int count, Int x, Int bound) {
    return _mm256_sub_epi32(count, _mm256_cmpgt_epi32(x, bound));
  }

  SPARKFP4_OP Int multiply_pairs(Int a, Int b) { return _mm256_madd_epi16(a, b); }

  // By the low three bits of the code.
  SPARKFP4_OP Float e2m1_magnitude(Int code) {
    return _mm256_permutevar8x32_ps(_mm256_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f), code);
  }

  SPARKFP4_OP Float from_half(Int bits) {
    Int low = _mm256_and_si256(bits, set(0xffff));
    Int twice = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0xd8);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(twice));
  }

  SPARKFP4_OP Int to_half_upwards(Float x) {
    return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  }

  SPARKFP4_OP Int load(const unsigned char *from) { return _mm256_loadu_si256(reinterpret_cast<const Int *>(from)); }

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
    Int ab01 = _mm256_unpacklo_epi32(a, b);
    Int ab23 = _mm256_unpackhi_epi32(a, b);
    Int cd01 = _mm256_unpacklo_epi32(c, d);
    Int cd23 = _mm256_unpackhi_epi32(c, d);
    to[0] = _mm256_unpacklo_epi64(ab01, cd01);
    to[1] = _mm256_unpackhi_epi64(ab01, cd01);
    to[2] = _mm256_unpacklo_epi64(ab23, cd23);
    to[3] = _mm256_unpackhi_epi64(ab23, cd23);
  }

  // Lane by lane: first, second.
  SPARKFP4_OP void store_pairs(unsigned char *to, Int first, Int second) {
    Int even = _mm256_unpacklo_epi32(first, second);
    Int odd = _mm256_unpackhi_epi32(first, second);
    _mm256_storeu_si256(reinterpret_cast<Int *>(to), _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256(reinterpret_cast<Int *>(to + 32), _mm256_permute2x128_si256(even, odd, 0x31));
  }

  SPARKFP4_OP void store_bytes(unsigned char *to, Int x) {
    __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i *>(to), _mm_packus_epi16(words, words));
  }

  SPARKFP4_OP void accumulate(double *sums, Float x) {
    __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), low));
    _mm256_storeu_pd(sums + 4, _mm256_add_pd(_mm256_loadu_pd(sums + 4), high));
  }
#undef SPARKFP4_OP
};

}  // namespace

const Kernel kAvx2Kernel = kernel_of<Avx2>();

}  // namespace sparkfp4
