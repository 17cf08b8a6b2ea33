// Layouts by 16 bytes, which every processor has.
#include "layout_moves.h"
#include "layout_values.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace sparkfp4 {
namespace {

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint16_t Halves8 __attribute__((vector_size(16)));
typedef uint32_t Words4 __attribute__((vector_size(16)));
typedef uint64_t Longs2 __attribute__((vector_size(16)));
typedef float Floats4 __attribute__((vector_size(16)));

// The values of a byte's two codes.
struct Pairs {
  float of[256][2];

  constexpr Pairs() : of() {
    for (int byte = 0; byte < 256; byte++) {
      of[byte][0] = kCodeValues[byte & 0xf];
      of[byte][1] = kCodeValues[byte >> 4];
    }
  }
};

constexpr Pairs kPairs;

struct Vector16 {
  using Vector = Longs2;
  static constexpr int kVectors = 4;

  static Vector load(const unsigned char *from) {
    Vector x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(unsigned char *to, Vector x) { std::memcpy(to, &x, sizeof x); }
  static void stream(unsigned char *to, Vector x) {
#ifdef __SSE2__
    _mm_stream_si128(reinterpret_cast<__m128i *>(to), reinterpret_cast<__m128i>(x));
#else
    store(to, x);
#endif
  }
  static void fence() {
#ifdef __SSE2__
    _mm_sfence();
#endif
  }

  static Vector quarters(const unsigned char *const *places) { return load(places[0]); }
  static void join_halves(const Vector *x, const Vector *y, Vector *first, Vector *second) {
    for (int i = 0; i < 2; i++) {
      first[i] = x[i];
      first[2 + i] = y[i];
      second[i] = x[2 + i];
      second[2 + i] = y[2 + i];
    }
  }
  static void transpose_words_across(Vector *x) {
    Vector a = low32(x[0], x[1]);
    Vector b = low32(x[2], x[3]);
    Vector c = high32(x[0], x[1]);
    Vector d = high32(x[2], x[3]);
    x[0] = low64(a, b);
    x[1] = high64(a, b);
    x[2] = low64(c, d);
    x[3] = high64(c, d);
  }
  static void transpose_quarters(Vector *a, Vector *b, Vector *c, Vector *d) {
    Vector *lines[] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
      for (int j = 0; j < i; j++) {
        Vector x = lines[i][j];
        lines[i][j] = lines[j][i];
        lines[j][i] = x;
      }
    }
  }

  static Vector low8(Vector x, Vector y) {
    return shuffled_as(x, y, Bytes16{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
  }
  static Vector high8(Vector x, Vector y) {
    return shuffled_as(x, y, Bytes16{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
  }
  static Vector low32(Vector x, Vector y) { return shuffled_as(x, y, Words4{0, 4, 1, 5}); }
  static Vector high32(Vector x, Vector y) { return shuffled_as(x, y, Words4{2, 6, 3, 7}); }
  static Vector low64(Vector x, Vector y) { return shuffled_as(x, y, Longs2{0, 2}); }
  static Vector high64(Vector x, Vector y) { return shuffled_as(x, y, Longs2{1, 3}); }
  // Without SSSE3 compilers take a vector apart for a shuffle that is no unpacking or packing.
  static Vector interleaved_halves(Vector x) {
    return shuffled_as(x, high64(x, x), Halves8{0, 8, 1, 9, 2, 10, 3, 11});
  }
  static Vector parted_bytes(Vector x) {
    Vector halves = interleaved_halves(interleaved_halves(x));
#ifdef __SSE2__
    __m128i even = reinterpret_cast<__m128i>(halves & 0x00ff00ff00ff00ff);
    __m128i odd = _mm_srli_epi16(reinterpret_cast<__m128i>(halves), 8);
    return reinterpret_cast<Vector>(_mm_packus_epi16(even, odd));
#else
    return shuffled_as(halves, halves, Bytes16{0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15});
#endif
  }
  static Vector exchanged(Vector x) {
    return (x & 0xf0f0f0f00f0f0f0f) | (x >> 28 & 0x00000000f0f0f0f0) | (x << 28 & 0x0f0f0f0f00000000);
  }

  class ScaleTable {
   public:
    explicit ScaleTable(const unsigned char *table) : table_(table) {}

    Vector operator()(Vector x) const {
      return Vector{looked_up(x[0]), looked_up(x[1])};
    }

   private:
    uint64_t looked_up(uint64_t bytes) const {
      uint64_t result = 0;
      for (int i = 0; i < 64; i += 8) {
        result |= static_cast<uint64_t>(table_[bytes >> i & 0xff]) << i;
      }

      return result;
    }

    const unsigned char *table_;
  };

  struct ScaleEncoder : ScaleTable {
    explicit ScaleEncoder(const MarlinScale *scale) : ScaleTable(scale->encoded()) {}
  };

  struct ScaleDecoder : ScaleTable {
    explicit ScaleDecoder(const MarlinScale *scale) : ScaleTable(scale->decoded()) {}
  };

  static bool scale_products(const unsigned char *scales, float global, float *products) {
    bool finite = true;
    for (int i = 0; i < kScaleGroup; i++) {
      products[i] = e4m3_value(scales[i]) * global;
      finite &= is_finite(products[i]);
    }

    return finite;
  }

  template <bool kStreams>
  static void finite_to_f32(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
    for (int64_t block = 0; block < blocks; block++, codes += kPackedBlock, out += 4 * kBlock) {
      Line<Vector16> line;
      for (int i = 0; i < 4; i++) {
        line.of[i] = reinterpret_cast<Vector>(products(codes + 2 * i, scales[block]));
      }

      put<Vector16, kStreams>(out, line);
    }
  }

  template <bool kStreams>
  static void finite_to_bf16(const unsigned char *codes, const float *scales, int64_t blocks, unsigned char *out) {
    for (int64_t block = 0; block < blocks; block += 2, codes += 2 * kPackedBlock, out += 4 * kBlock) {
      Line<Vector16> line;
      for (int i = 0; i < 4; i++) {
        Words4 low = rounded(products(codes + 4 * i, scales[block + i / 2]));
        Words4 high = rounded(products(codes + 4 * i + 2, scales[block + i / 2]));
        Halves8 upper{1, 3, 5, 7, 9, 11, 13, 15};
        line.of[i] = shuffled_as(reinterpret_cast<Vector>(low), reinterpret_cast<Vector>(high), upper);
      }

      put<Vector16, kStreams>(out, line);
    }
  }

 private:
  template <typename T>
  static Vector shuffled_as(Vector x, Vector y, T order) {
    T a = reinterpret_cast<T>(x);
    T b = reinterpret_cast<T>(y);
#ifdef __clang__
    T result = a;
    constexpr int kSize = sizeof(T) / sizeof(a[0]);
    for (int i = 0; i < kSize; i++) {
      result[i] = order[i] < kSize ? a[order[i]] : b[order[i] - kSize];
    }

    return reinterpret_cast<Vector>(result);
#else
    return reinterpret_cast<Vector>(__builtin_shuffle(a, b, order));
#endif
  }

  static Floats4 products(const unsigned char *codes, float scale) {
    const float *low = kPairs.of[codes[0]];
    const float *high = kPairs.of[codes[1]];
    return Floats4{low[0], low[1], high[0], high[1]} * scale;
  }

  // To bfloat16, nearest even, in the upper half of each lane; no lane is NaN.
  static Words4 rounded(Floats4 x) {
    Words4 bits = reinterpret_cast<Words4>(x);
    return bits + 0x7fff + (bits >> 16 & 1);
  }
};

}  // namespace

const LayoutKernel kLayoutScalar = layout_kernel<Vector16>();

}  // namespace sparkfp4
