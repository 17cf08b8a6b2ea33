// Marlin's codes by AVX-512.
#include <immintrin.h>

#include <cstdint>

#include "marlin_codes.h"

namespace sparkfp4 {
namespace {

struct Vector64 {
  using Vector = __m512i;
  static constexpr int kLanes = 4;

  static Vector load(const unsigned char *from) { return _mm512_loadu_si512(reinterpret_cast<const Vector *>(from)); }
  static void store(unsigned char *to, Vector x) { _mm512_storeu_si512(reinterpret_cast<Vector *>(to), x); }
  static Vector load_lanes(const unsigned char *const *tiles, int at) {
    __m512i x = _mm512_castsi128_si512(load16(tiles[0] + at));
    x = _mm512_inserti32x4(x, load16(tiles[2] + at), 1);
    x = _mm512_inserti32x4(x, load16(tiles[4] + at), 2);
    return _mm512_inserti32x4(x, load16(tiles[6] + at), 3);
  }
  static void store_lanes(Vector x, unsigned char *const *tiles, int at) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(tiles[0] + at), _mm512_castsi512_si128(x));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(tiles[2] + at), _mm512_extracti32x4_epi32(x, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(tiles[4] + at), _mm512_extracti32x4_epi32(x, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(tiles[6] + at), _mm512_extracti32x4_epi32(x, 3));
  }
  static Vector bytes(uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Vector longs(uint64_t x) { return _mm512_set1_epi64(static_cast<long long>(x)); }
  static Vector both(Vector x, Vector y) { return _mm512_and_si512(x, y); }
  static Vector either(Vector x, Vector y) { return _mm512_or_si512(x, y); }
  static Vector right64(Vector x, int bits) { return _mm512_srli_epi64(x, bits); }
  static Vector left64(Vector x, int bits) { return _mm512_slli_epi64(x, bits); }
  static Vector right16(Vector x, int bits) { return _mm512_srli_epi16(x, bits); }
  static Vector low8(Vector x, Vector y) { return _mm512_unpacklo_epi8(x, y); }
  static Vector high8(Vector x, Vector y) { return _mm512_unpackhi_epi8(x, y); }
  static Vector low32(Vector x, Vector y) { return _mm512_unpacklo_epi32(x, y); }
  static Vector high32(Vector x, Vector y) { return _mm512_unpackhi_epi32(x, y); }
  static Vector low64(Vector x, Vector y) { return _mm512_unpacklo_epi64(x, y); }
  static Vector high64(Vector x, Vector y) { return _mm512_unpackhi_epi64(x, y); }
  static Vector interleaved_halves(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
  }
  static Vector parted_halves(Vector x) {
    return shuffled(x, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
  }
  // The low bytes of halves whose high bytes are 0.
  static Vector pack16(Vector x, Vector y) { return _mm512_packus_epi16(x, y); }

 private:
  static __m128i load16(const unsigned char *from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i *>(from));
  }
  static Vector shuffled(Vector x, __m128i order) {
    return _mm512_shuffle_epi8(x, _mm512_broadcast_i32x4(order));
  }
};

}  // namespace

const MarlinKernel kMarlinAvx512 = {MarlinCodes<Vector64>::arrange, MarlinCodes<Vector64>::restore};

}  // namespace sparkfp4
