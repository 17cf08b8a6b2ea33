// Layouts by AVX-512.
#include <immintrin.h>

#include "layout_moves.h"
#include "layout_values.h"

namespace sparkfp4 {
namespace {

struct Vector64 {
  using Vector = __m512i;
  static constexpr int kVectors = 1;

  static Vector load(const unsigned char *from) { return _mm512_loadu_si512(from); }
  static void store(unsigned char *to, Vector x) { _mm512_storeu_si512(to, x); }
  static void stream(unsigned char *to, Vector x) { _mm512_stream_si512(reinterpret_cast<Vector *>(to), x); }
  static void fence() { _mm_sfence(); }

  static Vector quarters(const unsigned char *const *places) {
    Vector x = _mm512_castsi128_si512(load16(places[0]));
    x = _mm512_inserti32x4(x, load16(places[1]), 1);
    x = _mm512_inserti32x4(x, load16(places[2]), 2);
    return _mm512_inserti32x4(x, load16(places[3]), 3);
  }
  static void join_halves(const Vector *x, const Vector *y, Vector *first, Vector *second) {
    first[0] = _mm512_shuffle_i64x2(x[0], y[0], 0x44);
    second[0] = _mm512_shuffle_i64x2(x[0], y[0], 0xee);
  }
  static void transpose_words_across(Vector *x) {
    x[0] = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x[0]);
  }
  static void transpose_quarters(Vector *a, Vector *b, Vector *c, Vector *d) {
    // Quarters 0 and 1 of two lines, and 2 and 3; then the even ones of two such, and the odd ones.
    Vector low[] = {_mm512_shuffle_i64x2(a[0], b[0], 0x44), _mm512_shuffle_i64x2(c[0], d[0], 0x44)};
    Vector high[] = {_mm512_shuffle_i64x2(a[0], b[0], 0xee), _mm512_shuffle_i64x2(c[0], d[0], 0xee)};
    a[0] = _mm512_shuffle_i64x2(low[0], low[1], 0x88);
    b[0] = _mm512_shuffle_i64x2(low[0], low[1], 0xdd);
    c[0] = _mm512_shuffle_i64x2(high[0], high[1], 0x88);
    d[0] = _mm512_shuffle_i64x2(high[0], high[1], 0xdd);
  }

  static Vector low8(Vector x, Vector y) { return _mm512_unpacklo_epi8(x, y); }
  static Vector high8(Vector x, Vector y) { return _mm512_unpackhi_epi8(x, y); }
  static Vector low32(Vector x, Vector y) { return _mm512_unpacklo_epi32(x, y); }
  static Vector high32(Vector x, Vector y) { return _mm512_unpackhi_epi32(x, y); }
  static Vector low64(Vector x, Vector y) { return _mm512_unpacklo_epi64(x, y); }
  static Vector high64(Vector x, Vector y) { return _mm512_unpackhi_epi64(x, y); }
  static Vector interleaved_halves(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  }
  static Vector parted_bytes(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15));
  }
  static Vector exchanged(Vector x) {
    constexpr int kChoose = 0xca;  // of the second where the first is set, else of the third
    Vector upper = _mm512_set1_epi64(static_cast<long long>(0xffffffff00000000));
    Vector same = _mm512_set1_epi64(static_cast<long long>(0xf0f0f0f00f0f0f0f));
    Vector moved = _mm512_ternarylogic_epi64(upper, _mm512_slli_epi64(x, 28), _mm512_srli_epi64(x, 28), kChoose);
    return _mm512_ternarylogic_epi64(same, x, moved, kChoose);
  }

  class ScaleEncoder {
   public:
    explicit ScaleEncoder(const MarlinScale *scale)
        : base_(bytes(scale->base())), limit_(bytes(scale->limit())), first_(spread(scale->encoded())) {}

    Vector operator()(Vector x) const {
      Vector code = _mm512_add_epi8(x, base_);
      code = _mm512_mask_shuffle_epi8(code, _mm512_cmplt_epu8_mask(x, bytes(16)), first_, x);
      return _mm512_mask_mov_epi8(code, _mm512_cmpgt_epu8_mask(x, limit_), bytes(MarlinScale::kNone));
    }

   private:
    Vector base_;
    Vector limit_;
    Vector first_;
  };

  class ScaleDecoder {
   public:
    explicit ScaleDecoder(const MarlinScale *scale)
        : base_(bytes(scale->base())),
          limit_(bytes(scale->limit())),
          below_(spread(scale->near_base())),
          above_(spread(scale->near_base() + 16)) {}

    Vector operator()(Vector x) const {
      Vector from_base = _mm512_sub_epi8(x, base_);
      Vector from_table = _mm512_add_epi8(from_base, bytes(16));
      Vector code = bytes(MarlinScale::kLost);
      code = _mm512_mask_mov_epi8(code, _mm512_cmple_epu8_mask(from_base, limit_), from_base);
      code = _mm512_mask_shuffle_epi8(code, _mm512_cmplt_epu8_mask(from_base, bytes(16)), above_, from_base);
      code = _mm512_mask_shuffle_epi8(code, _mm512_cmplt_epu8_mask(from_table, bytes(16)), below_, from_table);
      return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(x, x), code);
    }

   private:
    Vector base_;
    Vector limit_;
    Vector below_;
    Vector above_;
  };

  // False where a product is not finite.
  static bool scale_products(const unsigned char *scales, float global, float *products) {
    Vector byte = _mm512_cvtepu8_epi32(load16(scales));
    Vector magnitude = _mm512_and_si512(byte, _mm512_set1_epi32(0x7f));
    Vector normal = _mm512_add_epi32(_mm512_slli_epi32(magnitude, kE4m3Shift), _mm512_set1_epi32(kE4m3Bias));
    __m512 subnormals = _mm512_castps256_ps512(_mm256_loadu_ps(kE4m3Subnormals));
    __mmask16 is_subnormal = _mm512_cmplt_epu32_mask(magnitude, _mm512_set1_epi32(8));
    __m512 value = _mm512_mask_permutexvar_ps(_mm512_castsi512_ps(normal), is_subnormal, magnitude, subnormals);
    __mmask16 is_nan = _mm512_cmpeq_epi32_mask(magnitude, _mm512_set1_epi32(0x7f));
    value = _mm512_mask_mov_ps(value, is_nan, _mm512_set1_ps(__builtin_nanf("")));
    Vector sign = _mm512_and_si512(_mm512_slli_epi32(byte, 24), _mm512_set1_epi32(INT32_MIN));
    __m512 product = _mm512_mul_ps(_mm512_or_ps(value, _mm512_castsi512_ps(sign)), _mm512_set1_ps(global));
    _mm512_storeu_ps(products, product);
    return _mm512_cmp_ps_mask(_mm512_abs_ps(product), _mm512_set1_ps(__FLT_MAX__), _CMP_LE_OQ) == 0xffff;
  }

  template <bool kStreams>
  static void finite_to_f32(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
    const __m512 values = _mm512_loadu_ps(kCodeValues);
    const Vector word = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const Vector shift = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    for (int64_t block = 0; block < blocks; block++) {
      const __m128i *from = reinterpret_cast<const __m128i *>(codes + block * kPackedBlock);
      Vector both = _mm512_castsi128_si512(_mm_loadl_epi64(from));
      Vector code = _mm512_srlv_epi32(_mm512_permutexvar_epi32(word, both), shift);
      // By the lowest four bits.
      __m512 product = _mm512_mul_ps(_mm512_permutexvar_ps(code, values), _mm512_set1_ps(scales[block]));
      put<Vector64, kStreams>(out + block * 4 * kBlock, {{_mm512_castps_si512(product)}});
    }
  }

  // The sixteen products of two blocks, rounded, are a table of 32 words. X and Y are parts of it such that packing
  // them, quarter by quarter, leaves each block's in order.
  template <bool kStreams>
  static void finite_to_bf16(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
    const __m512 x =
        _mm512_setr_ps(0, 0.5f, 1, 1.5f, -0.0f, -0.5f, -1, -1.5f, 0, 0.5f, 1, 1.5f, -0.0f, -0.5f, -1, -1.5f);
    const __m512 y = _mm512_setr_ps(2, 3, 4, 6, -2, -3, -4, -6, 2, 3, 4, 6, -2, -3, -4, -6);
    const Vector nibbles = _mm512_set1_epi32(0x000f000f);
    const Vector second = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0x100010, 0x100010, 0x100010, 0x100010, 0x100010,
                                            0x100010, 0x100010, 0x100010);
    for (int64_t block = 0; block < blocks; block += 2) {
      __m512 scale = _mm512_mask_mov_ps(_mm512_set1_ps(scales[block]), 0xff00, _mm512_set1_ps(scales[block + 1]));
      Vector table = _mm512_packus_epi32(rounded(_mm512_mul_ps(x, scale)), rounded(_mm512_mul_ps(y, scale)));
      // A byte's codes to the two words of a lane.
      Vector bytes = _mm512_cvtepu8_epi32(load16(codes + block * kPackedBlock));
      constexpr int kEitherAnd = 0xa8;
      Vector code = _mm512_ternarylogic_epi32(bytes, _mm512_slli_epi32(bytes, 12), nibbles, kEitherAnd);
      put<Vector64, kStreams>(out + block * 2 * kBlock,
                              {{_mm512_permutexvar_epi16(_mm512_or_si512(code, second), table)}});
    }
  }

 private:
  static __m128i load16(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }
  static Vector bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Vector spread(const unsigned char *table) { return _mm512_broadcast_i32x4(load16(table)); }
  static Vector shuffled(Vector x, __m128i order) { return _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(order)); }

  // To bfloat16, nearest even, in lanes of 32 bits; no lane is NaN.
  static Vector rounded(__m512 x) {
    Vector bits = _mm512_castps_si512(x);
    Vector odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  }
};

}  // namespace

const LayoutKernel kLayoutAvx512 = layout_kernel<Vector64>();

}  // namespace sparkfp4
