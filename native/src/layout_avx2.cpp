// Layouts by AVX2.
#include <immintrin.h>

#include <utility>

#include "layout_moves.h"
#include "layout_values.h"

namespace sparkfp4 {
namespace {

struct Vector32 {
  using Vector = __m256i;
  static constexpr int kVectors = 2;

  static Vector load(const unsigned char *from) { return _mm256_loadu_si256(reinterpret_cast<const Vector *>(from)); }
  static void store(unsigned char *to, Vector x) { _mm256_storeu_si256(reinterpret_cast<Vector *>(to), x); }
  static void stream(unsigned char *to, Vector x) { _mm256_stream_si256(reinterpret_cast<Vector *>(to), x); }
  static void fence() { _mm_sfence(); }

  static Vector quarters(const unsigned char *const *places) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(places[0])), load16(places[1]), 1);
  }
  static void join_halves(const Vector *x, const Vector *y, Vector *first, Vector *second) {
    first[0] = x[0];
    first[1] = y[0];
    second[0] = x[1];
    second[1] = y[1];
  }
  static void transpose_words_across(Vector *x) {
    Vector order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    Vector low = _mm256_unpacklo_epi32(x[0], x[1]);
    Vector high = _mm256_unpackhi_epi32(x[0], x[1]);
    x[0] = _mm256_permutevar8x32_epi32(low, order);
    x[1] = _mm256_permutevar8x32_epi32(high, order);
  }
  static void transpose_quarters(Vector *a, Vector *b, Vector *c, Vector *d) {
    transpose_pair(a[0], b[0]);
    transpose_pair(c[1], d[1]);
    transpose_pair(a[1], b[1]);
    transpose_pair(c[0], d[0]);
    std::swap(a[1], c[0]);
    std::swap(b[1], d[0]);
  }

  static Vector low8(Vector x, Vector y) { return _mm256_unpacklo_epi8(x, y); }
  static Vector high8(Vector x, Vector y) { return _mm256_unpackhi_epi8(x, y); }
  static Vector low32(Vector x, Vector y) { return _mm256_unpacklo_epi32(x, y); }
  static Vector high32(Vector x, Vector y) { return _mm256_unpackhi_epi32(x, y); }
  static Vector low64(Vector x, Vector y) { return _mm256_unpacklo_epi64(x, y); }
  static Vector high64(Vector x, Vector y) { return _mm256_unpackhi_epi64(x, y); }
  static Vector interleaved_halves(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  }
  static Vector parted_bytes(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15));
  }
  static Vector exchanged(Vector x) {
    Vector down = _mm256_and_si256(_mm256_srli_epi64(x, 28), _mm256_set1_epi64x(0x00000000f0f0f0f0));
    Vector up = _mm256_and_si256(_mm256_slli_epi64(x, 28), _mm256_set1_epi64x(0x0f0f0f0f00000000));
    Vector same = _mm256_and_si256(x, _mm256_set1_epi64x(static_cast<long long>(0xf0f0f0f00f0f0f0f)));
    return _mm256_or_si256(same, _mm256_or_si256(down, up));
  }

  class ScaleEncoder {
   public:
    explicit ScaleEncoder(const MarlinScale *scale)
        : base_(bytes(scale->base())), limit_(bytes(scale->limit())), first_(spread(scale->encoded())) {}

    Vector operator()(Vector x) const {
      Vector code = _mm256_add_epi8(x, base_);
      code = _mm256_blendv_epi8(code, _mm256_shuffle_epi8(first_, x), at_most(x, bytes(15)));
      return _mm256_blendv_epi8(bytes(MarlinScale::kNone), code, at_most(x, limit_));
    }

   private:
    Vector base_;
    Vector limit_;
    Vector first_;
  };

  class ScaleDecoder {
   public:
    explicit ScaleDecoder(const MarlinScale *scale) : base_(bytes(scale->base())), limit_(bytes(scale->limit())) {
      // What turns the codes that the limit gives into those of the tables.
      below_ = _mm256_xor_si256(spread(scale->near_base()), bytes(MarlinScale::kLost));
      Vector place = spread(kPlaces);
      Vector by_limit = _mm256_blendv_epi8(bytes(MarlinScale::kLost), place, at_most(place, limit_));
      above_ = _mm256_xor_si256(spread(scale->near_base() + 16), by_limit);
    }

    Vector operator()(Vector x) const {
      Vector from_base = _mm256_sub_epi8(x, base_);
      Vector from_table = _mm256_add_epi8(from_base, bytes(16));
      Vector code = _mm256_blendv_epi8(bytes(MarlinScale::kLost), from_base, at_most(from_base, limit_));
      // Of what is above 15 the highest bit is set, for which a shuffle gives 0.
      Vector past = bytes(0x70);
      Vector below = _mm256_shuffle_epi8(below_, _mm256_adds_epu8(from_table, past));
      Vector above = _mm256_shuffle_epi8(above_, _mm256_adds_epu8(from_base, past));
      code = _mm256_xor_si256(code, _mm256_xor_si256(below, above));
      return _mm256_andnot_si256(_mm256_cmpeq_epi8(x, _mm256_setzero_si256()), code);
    }

   private:
    static constexpr unsigned char kPlaces[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

    Vector base_;
    Vector limit_;
    Vector below_;
    Vector above_;
  };

  // False where a product is not finite.
  static bool scale_products(const unsigned char *scales, float global, float *products) {
    __m256 first = scale_values(scales, global);
    __m256 second = scale_values(scales + 8, global);
    _mm256_storeu_ps(products, first);
    _mm256_storeu_ps(products + 8, second);
    return _mm256_movemask_ps(_mm256_and_ps(are_finite(first), are_finite(second))) == 0xff;
  }

  template <bool kStreams>
  static void finite_to_f32(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
    for (int64_t block = 0; block < blocks; block++, codes += kPackedBlock, out += 4 * kBlock) {
      float scale = scales[block];
      put<Vector32, kStreams>(out, {{_mm256_castps_si256(products(codes, scale)),
                                     _mm256_castps_si256(products(codes + 4, scale))}});
    }
  }

  // The eight magnitudes of a block, rounded, are a table of low bytes and of high ones in a quarter of its own.
  template <bool kStreams>
  static void finite_to_bf16(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
    const __m256 least = _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(kCodeValues));
    const __m256 largest = _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(kCodeValues + 4));
    for (int64_t block = 0; block < blocks; block += 2) {
      __m128 first = _mm_broadcast_ss(scales + block);
      __m256 scale = _mm256_insertf128_ps(_mm256_castps128_ps256(first), _mm_broadcast_ss(scales + block + 1), 1);
      Vector words = _mm256_packus_epi32(rounded(_mm256_mul_ps(least, scale)), rounded(_mm256_mul_ps(largest, scale)));
      Vector table = _mm256_packus_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(words, 8));
      Vector pairs = _mm256_permute4x64_epi64(_mm256_castsi128_si256(load16(codes + block * kPackedBlock)), 0x10);
      Vector mask = bytes(0x0f);
      Vector code = _mm256_unpacklo_epi8(_mm256_and_si256(pairs, mask),
                                         _mm256_and_si256(_mm256_srli_epi16(pairs, 4), mask));
      Vector magnitude = _mm256_and_si256(code, bytes(7));
      Vector sign = _mm256_slli_epi16(_mm256_and_si256(code, bytes(8)), 4);
      Vector low = _mm256_shuffle_epi8(table, magnitude);
      Vector high = _mm256_xor_si256(_mm256_shuffle_epi8(table, _mm256_or_si256(magnitude, bytes(8))), sign);
      Line<Vector32> line = {{_mm256_unpacklo_epi8(low, high), _mm256_unpackhi_epi8(low, high)}};
      transpose_pair(line.of[0], line.of[1]);
      put<Vector32, kStreams>(out + block * 2 * kBlock, line);
    }
  }

 private:
  static __m128i load16(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }
  static Vector bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Vector spread(const unsigned char *table) { return _mm256_broadcastsi128_si256(load16(table)); }
  static Vector shuffled(Vector x, __m128i order) {
    return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
  }
  // Of bytes without a sign.
  static Vector at_most(Vector x, Vector limit) { return _mm256_cmpeq_epi8(_mm256_min_epu8(x, limit), x); }
  static void transpose_pair(Vector &x, Vector &y) {
    Vector low = _mm256_permute2x128_si256(x, y, 0x20);
    y = _mm256_permute2x128_si256(x, y, 0x31);
    x = low;
  }

  static __m256 scale_values(const unsigned char *scales, float global) {
    Vector byte = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i *>(scales)));
    Vector magnitude = _mm256_and_si256(byte, _mm256_set1_epi32(0x7f));
    Vector normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, kE4m3Shift), _mm256_set1_epi32(kE4m3Bias));
    __m256 subnormal = _mm256_permutevar8x32_ps(_mm256_loadu_ps(kE4m3Subnormals), magnitude);
    __m256 is_subnormal = _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(8), magnitude));
    __m256 value = _mm256_blendv_ps(_mm256_castsi256_ps(normal), subnormal, is_subnormal);
    // A NaN's bits are all set.
    Vector nan = _mm256_cmpeq_epi32(magnitude, _mm256_set1_epi32(0x7f));
    Vector sign = _mm256_and_si256(_mm256_slli_epi32(byte, 24), _mm256_set1_epi32(INT32_MIN));
    value = _mm256_or_ps(value, _mm256_castsi256_ps(_mm256_or_si256(nan, sign)));
    return _mm256_mul_ps(value, _mm256_set1_ps(global));
  }

  static __m256 are_finite(__m256 x) {
    __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    return _mm256_cmp_ps(magnitude, _mm256_set1_ps(__FLT_MAX__), _CMP_LE_OQ);
  }

  // Eight codes times a scale.
  static __m256 products(const unsigned char *codes, float scale) {
    int bits;
    std::memcpy(&bits, codes, sizeof bits);
    Vector code = _mm256_srlv_epi32(_mm256_set1_epi32(bits), _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28));
    // By the lowest three bits.
    __m256 magnitude = _mm256_permutevar8x32_ps(_mm256_loadu_ps(kCodeValues), code);
    Vector sign = _mm256_and_si256(_mm256_slli_epi32(code, 28), _mm256_set1_epi32(INT32_MIN));
    return _mm256_mul_ps(_mm256_xor_ps(magnitude, _mm256_castsi256_ps(sign)), _mm256_set1_ps(scale));
  }

  // To bfloat16, nearest even, in lanes of 32 bits; no lane is NaN.
  static Vector rounded(__m256 x) {
    Vector bits = _mm256_castps_si256(x);
    Vector odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  }
};

}  // namespace

const LayoutKernel kLayoutAvx2 = layout_kernel<Vector32>();

}  // namespace sparkfp4
