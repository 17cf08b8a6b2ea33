// Marlin's codes by 16 bytes, which every processor has.
#include "layout_blocks.h"
#include "marlin_codes.h"

namespace sparkfp4 {
namespace {

struct Vector16 {
  using Vector = Longs2;
  static constexpr int kLanes = 1;

  static Vector load(const unsigned char *from) { return load16<Vector>(from); }
  static void store(unsigned char *to, Vector x) { store16(to, x); }
  static Vector load_lanes(const unsigned char *const *tiles, int at) { return load(tiles[0] + at); }
  static void store_lanes(Vector x, unsigned char *const *tiles, int at) { store(tiles[0] + at, x); }
  static Vector bytes(uint8_t x) { return reinterpret_cast<Vector>(Bytes16{} + x); }
  static Vector longs(uint64_t x) { return Vector{x, x}; }
  static Vector both(Vector x, Vector y) { return x & y; }
  static Vector either(Vector x, Vector y) { return x | y; }
  static Vector right64(Vector x, int bits) { return x >> bits; }
  static Vector left64(Vector x, int bits) { return x << bits; }
  static Vector right16(Vector x, int bits) { return reinterpret_cast<Vector>(reinterpret_cast<Halves8>(x) >> bits); }
  static Vector low8(Vector x, Vector y) {
    return shuffled_as(x, y, Bytes16{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
  }
  static Vector high8(Vector x, Vector y) {
    return shuffled_as(x, y, Bytes16{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31});
  }
  static Vector low32(Vector x, Vector y) { return shuffled_as(x, y, Words4{0, 4, 1, 5}); }
  static Vector high32(Vector x, Vector y) { return shuffled_as(x, y, Words4{2, 6, 3, 7}); }
  static Vector low64(Vector x, Vector y) { return shuffled(x, y, Longs2{0, 2}); }
  static Vector high64(Vector x, Vector y) { return shuffled(x, y, Longs2{1, 3}); }
  static Vector interleaved_halves(Vector x) { return shuffled_as(x, x, Halves8{0, 4, 1, 5, 2, 6, 3, 7}); }
  static Vector parted_halves(Vector x) { return shuffled_as(x, x, Halves8{0, 2, 4, 6, 1, 3, 5, 7}); }
  // The low bytes of halves whose high bytes are 0.
  static Vector pack16(Vector x, Vector y) {
    return shuffled_as(x, y, Bytes16{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30});
  }

 private:
  template <typename T>
  static Vector shuffled_as(Vector x, Vector y, T order) {
    return reinterpret_cast<Vector>(shuffled(reinterpret_cast<T>(x), reinterpret_cast<T>(y), order));
  }
};

}  // namespace

const MarlinKernel kMarlinScalar = {MarlinCodes<Vector16>::arrange, MarlinCodes<Vector16>::restore};

}  // namespace sparkfp4
