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
  // Of INT4 the magnitudes, 16 bytes a block: 0, 2, 4, 6, 1, 3, 5, 7, and the same 8 behind. Of each half strip, those of
  // every other block first.
  template <typename Type>
  SPARKFP4_OP StripOfCodes<Avx2> prepare(const HalfBytes<Avx2> &x, unsigned char *indices) {
    constexpr bool kInt4 = Type::kSource == Int4::kSource;
    static constexpr unsigned char kWhole[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64};
    static constexpr unsigned char kQuarters[16] = {0, 1, 4, 9, 16, 36, 64, 144};
    HalfBytes<Avx2> magnitude = magnitudes<Avx2, Type>(x);
    Int even[2];
    Int odd[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
      if constexpr (kInt4) {
        Int *to = reinterpret_cast<Int *>(indices + 64 * i);
        _mm256_store_si256(to, _mm256_unpacklo_epi32(magnitude.low[i], magnitude.high[i]));
        _mm256_store_si256(to + 1, _mm256_unpackhi_epi32(magnitude.low[i], magnitude.high[i]));
      }

      even[i] = sum_bytes(Avx2::lookup(kInt4 ? kWhole : kQuarters, magnitude.low[i]));
      odd[i] = sum_bytes(Avx2::lookup(kInt4 ? kWhole : kQuarters, magnitude.high[i]));
    }

    Int of_even[2];
    Int of_odd[2];
    Avx2::split_pairs(even[0], even[1], of_even);
    Avx2::split_pairs(odd[0], odd[1], of_odd);
    return {largest_magnitude<Avx2>(magnitude), of_even[0], of_odd[0]};
  }

  SPARKFP4_OP Int load_codes(const unsigned char *tables, const uint32_t *offsets) {
    const unsigned char *codes = tables + offsetof(BlockTable, codes);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load_block(codes + offsets[0])),
                                   load_block(codes + offsets[2]), 1);
  }

  SPARKFP4_OP void add_eight(double *sums, const float *terms) {
    for (int i = 0; i < 8; i += 4) {
      _mm256_storeu_pd(sums + i, _mm256_add_pd(_mm256_loadu_pd(sums + i), _mm256_cvtps_pd(_mm_load_ps(terms + i))));
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
