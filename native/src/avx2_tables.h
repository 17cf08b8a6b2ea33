// The operations of AVX2 for blocks that are looked up.
#pragma once

#include "avx2.h"
#include "tabled.h"

namespace sparkfp4 {

template <>
struct TableOps<Avx2> {
  using Int = Avx2::Int;
  using Float = Avx2::Float;
  static constexpr int kSlots = 8;
  static constexpr int kIndexBytes = 128;

#define SPARKFP4_OP __attribute__((always_inline)) static inline
  SPARKFP4_OP Int largest_of_pairs(Int low, Int high) {
    Float first = _mm256_shuffle_ps(Avx2::as_float(low), Avx2::as_float(high), 0x88);
    Float second = _mm256_shuffle_ps(Avx2::as_float(low), Avx2::as_float(high), 0xdd);
    return _mm256_permute4x64_epi64(_mm256_max_epu8(Avx2::as_int(first), Avx2::as_int(second)), 0xd8);
  }

  // Of INT4 the magnitudes, 16 bytes a block: 0, 2, 4, 6, 1, 3, 5, 7, and the same 8 behind. Of each half strip, those
  // of every other block first.
  template <typename Type>
  SPARKFP4_OP StripOfCodes<Avx2> prepare(const HalfBytes<Avx2> &x, unsigned char *indices) {
    constexpr bool kInt4 = Type::kSource == Int4::kSource;
    static constexpr unsigned char kWhole[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64};
    static constexpr unsigned char kQuarters[16] = {0, 1, 4, 9, 16, 36, 64, 144};
    HalfBytes<Avx2> magnitude = magnitudes<Avx2, Type>(x);
    Int sums[2][2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      if constexpr (kInt4) {
        Int *to = reinterpret_cast<Int *>(indices + 64 * i);
        _mm256_store_si256(to, _mm256_unpacklo_epi32(magnitude.low[i], magnitude.high[i]));
        _mm256_store_si256(to + 1, _mm256_unpackhi_epi32(magnitude.low[i], magnitude.high[i]));
      }

      sums[0][i] = sum_bytes(Avx2::lookup(kInt4 ? kWhole : kQuarters, magnitude.low[i]));
      sums[1][i] = sum_bytes(Avx2::lookup(kInt4 ? kWhole : kQuarters, magnitude.high[i]));
      sums[0][i] = kInt4 ? sums[0][i] : _mm256_add_epi32(sums[0][i], sums[1][i]);
    }

    Int even[2];
    Int odd[2];
    Avx2::split_pairs(sums[0][0], sums[0][1], even);
    Avx2::split_pairs(sums[1][0], sums[1][1], odd);
    return {largest_magnitude<Avx2>(magnitude), even[0], odd[0]};
  }

  SPARKFP4_OP Int load_codes(const unsigned char *tables, const uint32_t *offsets) {
    const unsigned char *codes = tables + offsetof(BlockTable, codes);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_block(codes + offsets[0])),
                                   load_block(codes + offsets[2]), 1);
  }

  SPARKFP4_OP void store_second_bytes(const uint32_t *lanes, unsigned char *to) {
    // Of vector i to lane i of each half.
    constexpr int kBytes = 0x0d090501;
    Int first = _mm256_shuffle_epi8(load_lanes<Avx2>(lanes), repeat_half(kBytes, -1, -1, -1));
    Int second = _mm256_shuffle_epi8(load_lanes<Avx2>(lanes + 8), repeat_half(-1, kBytes, -1, -1));
    Int third = _mm256_shuffle_epi8(load_lanes<Avx2>(lanes + 16), repeat_half(-1, -1, kBytes, -1));
    Int fourth = _mm256_shuffle_epi8(load_lanes<Avx2>(lanes + 24), repeat_half(-1, -1, -1, kBytes));
    Int all = _mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, fourth));
    Avx2::store(to, _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  }

  SPARKFP4_OP void add_lanes(const float *terms, int64_t blocks, double *sums) {
    __m256d lanes[4];
    for (int j = 0; j < 4; j++) {
      lanes[j] = _mm256_loadu_pd(sums + 4 * j);
    }

    int64_t i = 0;
    for (; i + 16 <= blocks; i += 16) {
      for (int j = 0; j < 4; j++) {
        lanes[j] = _mm256_add_pd(lanes[j], _mm256_cvtps_pd(_mm_load_ps(terms + i + 4 * j)));
      }
    }

    if (i < blocks) {
      lanes[0] = _mm256_add_pd(lanes[0], _mm256_cvtps_pd(_mm_load_ps(terms + i)));
      lanes[1] = _mm256_add_pd(lanes[1], _mm256_cvtps_pd(_mm_load_ps(terms + i + 4)));
    }

    for (int j = 0; j < 4; j++) {
      _mm256_storeu_pd(sums + 4 * j, lanes[j]);
    }
  }

  template <typename Type>
  SPARKFP4_OP Float errors(const unsigned char *tables, const uint32_t *offsets, const unsigned char *source,
                           const unsigned char *indices) {
    Float fours[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      Float blocks[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        const float *table = reinterpret_cast<const float *>(tables + offsets[4 * i + j]);
        if constexpr (Type::kSource == Int4::kSource) {
          blocks[j] = int4_errors(table, indices + 64 * i + j % 2 * 32 + j / 2 * 16);
        } else {
          blocks[j] = e2m1_errors(table, source + 8 * (4 * i + j));
        }
      }

      fours[i] = add_pairs(add_pairs(blocks[0], blocks[1]), add_pairs(blocks[2], blocks[3]));
    }

    return _mm256_add_ps(_mm256_permute2f128_ps(fours[0], fours[1], 0x20),
                         _mm256_permute2f128_ps(fours[0], fours[1], 0x31));
  }

 private:
  SPARKFP4_OP __m128i load_block(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }

  // The sum of each eight bytes, in a lane of 64 bits.
  SPARKFP4_OP Int sum_bytes(Int x) { return _mm256_sad_epu8(x, _mm256_setzero_si256()); }

  // Elements i and i + 8 of a block, for i of 0, 4, 2, 6 and of 1, 5, 3, 7.
  SPARKFP4_OP Float int4_errors(const float *table, const unsigned char *indices) {
    constexpr int kNone = static_cast<int>(0x80808000);
    const Int places = _mm256_setr_epi32(kNone, kNone + 2, kNone + 1, kNone + 3, kNone + 4, kNone + 6, kNone + 5,
                                         kNone + 7);
    Int both = _mm256_broadcastsi128_si256(load_block(indices));
    Int first = _mm256_shuffle_epi8(both, places);
    Int second = _mm256_shuffle_epi8(both, _mm256_add_epi32(places, _mm256_set1_epi32(8)));
    Float errors = _mm256_load_ps(table);
    return _mm256_add_ps(int4_errors(errors, first), int4_errors(errors, second));
  }

  SPARKFP4_OP Float int4_errors(Float errors, Int magnitude) {
    // That of 8 is in the place of 0, whose own one is 0.
    Int found = _mm256_castps_si256(_mm256_permutevar8x32_ps(errors, magnitude));
    return _mm256_castsi256_ps(_mm256_sign_epi32(found, magnitude));
  }

  // The same.
  SPARKFP4_OP Float e2m1_errors(const float *table, const unsigned char *source) {
    const Int shifts = _mm256_setr_epi32(0, 16, 8, 24, 4, 20, 12, 28);
    Float errors = _mm256_load_ps(table);
    Int first = _mm256_srlv_epi32(repeat(source), shifts);
    Int second = _mm256_srlv_epi32(repeat(source + 4), shifts);
    return _mm256_add_ps(_mm256_permutevar8x32_ps(errors, first), _mm256_permutevar8x32_ps(errors, second));
  }

  SPARKFP4_OP Int repeat_half(int a, int b, int c, int d) { return _mm256_setr_epi32(a, b, c, d, a, b, c, d); }

  SPARKFP4_OP Int repeat(const unsigned char *from) {
    int lane;
    std::memcpy(&lane, from, sizeof lane);
    return _mm256_set1_epi32(lane);
  }

  // Of each half: the sums of a's first and of its second pair, and of b's.
  SPARKFP4_OP Float add_pairs(Float a, Float b) {
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
  }
#undef SPARKFP4_OP
};

}  // namespace sparkfp4
