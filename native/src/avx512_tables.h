// The operations of AVX-512 for blocks that are looked up.
#pragma once

#include "avx512.h"
#include "tabled.h"

namespace sparkfp4 {

template <>
struct TableOps<Avx512> {
  using Int = Avx512::Int;
  using Float = Avx512::Float;
  static constexpr int kSlots = 16;
  static constexpr int kIndexBytes = 256;

#define SPARKFP4_OP __attribute__((always_inline)) static inline
  SPARKFP4_OP Int largest_of_pairs(Int low, Int high) {
    Int halves[2];
    Avx512::split_pairs(low, high, halves);
    return _mm512_max_epu8(halves[0], halves[1]);
  }

  // Of each half strip 64 bytes of indices, and 64 of those of elements 8 behind: in each quarter, which has two
  // blocks, elements 0, 2, 4, 6 of the first, the same of the second, and 1, 3, 5, 7 of both. A bit above the magnitude
  // tells the second one's.
  template <typename Type>
  SPARKFP4_OP StripOfCodes<Avx512> prepare(const HalfBytes<Avx512> &x, unsigned char *indices) {
    constexpr bool kInt4 = Type::kSource == Int4::kSource;
    static constexpr unsigned char kHalves[16] = {0, 1, 2, 3, 4, 6, 8, 12};
    const Int second = _mm512_set4_epi32(0x10101010, 0, 0x10101010, 0);
    Int largest[2];
    Int squares[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      Int first_half = shuffle<0x88>(x.low[i], x.high[i]);
      Int second_half = shuffle<0xdd>(x.low[i], x.high[i]);
      Int index[2];
      Int value[2];
      if constexpr (kInt4) {
        value[0] = Avx512::lookup(kInt4Magnitudes, first_half);
        value[1] = Avx512::lookup(kInt4Magnitudes, second_half);
        index[0] = _mm512_or_si512(value[0], second);
        index[1] = _mm512_or_si512(value[1], second);
      } else {
        const Int magnitude = _mm512_set1_epi32(0x07070707);
        index[0] = _mm512_ternarylogic_epi32(first_half, magnitude, second, 0xea);
        index[1] = _mm512_ternarylogic_epi32(second_half, magnitude, second, 0xea);
        value[0] = Avx512::lookup(kHalves, index[0]);
        value[1] = Avx512::lookup(kHalves, index[1]);
      }

      _mm512_store_si512(indices + 128 * i, index[0]);
      _mm512_store_si512(indices + 128 * i + 64, index[1]);
      largest[i] = _mm512_max_epu8(index[0], index[1]);
      Int pairs = _mm512_add_epi16(_mm512_maddubs_epi16(value[0], value[0]), _mm512_maddubs_epi16(value[1], value[1]));
      squares[i] = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    }

    const Int even = _mm512_setr_epi32(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29);
    const Int odd = _mm512_add_epi32(even, _mm512_set1_epi32(2));
    Int any = largest_byte<Avx512>(_mm512_max_epu8(_mm512_permutex2var_epi32(largest[0], even, largest[1]),
                                                   _mm512_permutex2var_epi32(largest[0], odd, largest[1])));
    Int of_even = _mm512_permutex2var_epi32(squares[0], even, squares[1]);
    Int of_odd = _mm512_permutex2var_epi32(squares[0], odd, squares[1]);
    return {_mm512_and_si512(any, _mm512_set1_epi32(kKeyMagnitude)),
            kInt4 ? of_even : _mm512_add_epi32(of_even, of_odd), of_odd};
  }

  SPARKFP4_OP Int load_codes(const unsigned char *tables, const uint32_t *offsets) {
    const unsigned char *codes = tables + offsetof(BlockTable, codes);
    Int x = _mm512_castsi128_si512(Avx512::load_quarter(codes + offsets[0]));
    x = _mm512_mask_broadcast_i32x4(x, 0x00f0, Avx512::load_quarter(codes + offsets[2]));
    x = _mm512_mask_broadcast_i32x4(x, 0x0f00, Avx512::load_quarter(codes + offsets[4]));
    return _mm512_mask_broadcast_i32x4(x, 0xf000, Avx512::load_quarter(codes + offsets[6]));
  }

  SPARKFP4_OP void store_second_bytes(const uint32_t *lanes, unsigned char *to) {
    // Of vector i to lane i of each quarter.
    constexpr int kBytes = 0x0d090501;
    Int first = _mm512_shuffle_epi8(load_lanes<Avx512>(lanes), _mm512_set4_epi32(-1, -1, -1, kBytes));
    Int second = _mm512_shuffle_epi8(load_lanes<Avx512>(lanes + 16), _mm512_set4_epi32(-1, -1, kBytes, -1));
    Int third = _mm512_shuffle_epi8(load_lanes<Avx512>(lanes + 32), _mm512_set4_epi32(-1, kBytes, -1, -1));
    Int fourth = _mm512_shuffle_epi8(load_lanes<Avx512>(lanes + 48), _mm512_set4_epi32(kBytes, -1, -1, -1));
    Int all = _mm512_or_si512(_mm512_or_si512(first, second), _mm512_or_si512(third, fourth));
    const Int order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    Avx512::store(to, _mm512_permutexvar_epi32(order, all));
  }

  SPARKFP4_OP void add_lanes(const float *terms, int64_t blocks, double *sums) {
    __m512d low = _mm512_loadu_pd(sums);
    __m512d high = _mm512_loadu_pd(sums + 8);
    for (int64_t i = 0; i < blocks; i += 16) {
      low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm256_load_ps(terms + i)));
      high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm256_load_ps(terms + i + 8)));
    }

    _mm512_storeu_pd(sums, low);
    _mm512_storeu_pd(sums + 8, high);
  }

  template <typename Type>
  SPARKFP4_OP Float errors(const unsigned char *tables, const uint32_t *offsets, const unsigned char *,
                           const unsigned char *indices) {
    // Every other pair of blocks, and the others.
    Float sums[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      Float a = two_errors(tables, offsets + 2 * i, indices + 16 * i);
      Float b = two_errors(tables, offsets + 2 * i + 4, indices + 16 * i + 32);
      Float c = two_errors(tables, offsets + 2 * i + 8, indices + 16 * i + 128);
      Float d = two_errors(tables, offsets + 2 * i + 12, indices + 16 * i + 160);
      Float ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
      Float cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
      sums[i] = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    }

    return _mm512_add_ps(_mm512_shuffle_ps(sums[0], sums[1], 0x44), _mm512_shuffle_ps(sums[0], sums[1], 0xee));
  }

 private:
  template <int kLanesOfBoth>
  SPARKFP4_OP Int shuffle(Int a, Int b) {
    return _mm512_castps_si512(_mm512_shuffle_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), kLanesOfBoth));
  }

  // Elements i and i + 8 of two blocks: in quarter k of the first one i = 2k, of the second one the same, and
  // i = 2k + 1 of both.
  SPARKFP4_OP Float two_errors(const unsigned char *tables, const uint32_t *offsets, const unsigned char *indices) {
    const Int shifts = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24);
    Int first = _mm512_srlv_epi32(_mm512_broadcast_i32x4(Avx512::load_quarter(indices)), shifts);
    Int second = _mm512_srlv_epi32(_mm512_broadcast_i32x4(Avx512::load_quarter(indices + 64)), shifts);
    Float a = _mm512_load_ps(reinterpret_cast<const float *>(tables + offsets[0]));
    Float b = _mm512_load_ps(reinterpret_cast<const float *>(tables + offsets[1]));
    return _mm512_add_ps(_mm512_permutex2var_ps(a, first, b), _mm512_permutex2var_ps(a, second, b));
  }
#undef SPARKFP4_OP
};

}  // namespace sparkfp4
