// Marlin's codes by AVX2.
#include <immintrin.h>

#include <cstdint>

#include "marlin_codes.h"

namespace sparkfp4 {
namespace {

struct Vector32 {
  using Vector = __m256i;
  static constexpr int kLanes = 2;

  static Vector load(const unsigned char *from) { return _mm256_loadu_si256(reinterpret_cast<const Vector *>(from)); }
  static void store(unsigned char *to, Vector x) { _mm256_storeu_si256(reinterpret_cast<Vector *>(to), x); }
  static Vector load_lanes(const unsigned char *const *tiles, int at) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(tiles[0] + at)), load16(tiles[2] + at), 1);
  }
  static void store_lanes(Vector x, unsigned char *const *tiles, int at) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(tiles[0] + at), _mm256_castsi256_si128(x));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(tiles[2] + at), _mm256_extracti128_si256(x, 1));
  }
  static Vector bytes(uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Vector longs(uint64_t x) { return _mm256_set1_epi64x(static_cast<long long>(x)); }
  static Vector both(Vector x, Vector y) { return _mm256_and_si256(x, y); }
  static Vector either(Vector x, Vector y) { return _mm256_or_si256(x, y); }
  static Vector right64(Vector x, int bits) { return _mm256_srli_epi64(x, bits); }
  static Vector left64(Vector x, int bits) { return _mm256_slli_epi64(x, bits); }
  static Vector right16(Vector x, int bits) { return _mm256_srli_epi16(x, bits); }
  static Vector low8(Vector x, Vector y) { return _mm256_unpacklo_epi8(x, y); }
  static Vector high8(Vector x, Vector y) { return _mm256_unpackhi_epi8(x, y); }
  static Vector low32(Vector x, Vector y) { return _mm256_unpacklo_epi32(x, y); }
  static Vector high32(Vector x, Vector y) { return _mm256_unpackhi_epi32(x, y); }
  static Vector low64(Vector x, Vector y) { return _mm256_unpacklo_epi64(x, y); }
  static Vector high64(Vector x, Vector y) { return _mm256_unpackhi_epi64(x, y); }
  static Vector interleaved_halves(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  }
  static Vector parted_halves(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  }
  // The low bytes of halves whose high bytes are 0.
  static Vector pack16(Vector x, Vector y) { return _mm256_packus_epi16(x, y); }

 private:
  static __m128i load16(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }
  static Vector shuffled(Vector x, __m128i order) {
    return _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
  }
};

}  // namespace

const MarlinKernel kMarlinAvx2 = {MarlinCodes<Vector32>::arrange, MarlinCodes<Vector32>::restore};

}  // namespace sparkfp4
