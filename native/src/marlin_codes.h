// Marlin's tiles of codes, 64 rows by 16 columns, for vectors of any width: anonymous, so that no instance is shared
// between instruction sets. A vector holds 8 bytes of a row, the row's part of a tile, for each of 2 tiles a lane of 16
// bytes; no operation crosses lanes.
//
// A tile's 512 bytes: 64 for each r of 0 to 7, of which word 4 q + j has rows 16 j + r and 8 below, bytes q and q + 4
// of each: the low halves of these four bytes, then the high ones.
#pragma once

#include "marlin_kernel.h"

namespace sparkfp4 {
namespace {

template <typename V>
struct MarlinCodes {
  using Vector = typename V::Vector;

  // Of 8 bytes b: low halves of (b0, b4), (b1, b5), (b2, b6), (b3, b7), then the high halves.
  static Vector split(Vector x) {
    Vector mask = V::bytes(0x0f);
    Vector low = V::both(x, mask);
    Vector high = V::both(V::right64(x, 4), mask);
    low = V::either(low, V::right64(low, 28));
    high = V::either(high, V::right64(high, 28));
    return V::either(V::both(low, V::longs(0xffffffff)), V::left64(high, 32));
  }

  static Vector joined(Vector y) {
    return V::either(V::either(V::both(y, V::longs(0xf0f0f0f00f0f0f0f)),
                               V::both(V::right64(y, 28), V::longs(0x00000000f0f0f0f0))),
                     V::both(V::left64(y, 28), V::longs(0x0f0f0f0f00000000)));
  }

  static void transpose(Vector (&w)[4]) {
    Vector a = V::low32(w[0], w[1]);
    Vector b = V::low32(w[2], w[3]);
    Vector c = V::high32(w[0], w[1]);
    Vector d = V::high32(w[2], w[3]);
    w[0] = V::low64(a, b);
    w[1] = V::high64(a, b);
    w[2] = V::low64(c, d);
    w[3] = V::high64(c, d);
  }

  static void arrange(const unsigned char *const *rows, int64_t at, unsigned char *const *tiles) {
    for (int first = 0; first < 8; first += 2 * V::kLanes) {
      for (int r = 0; r < 8; r++) {
        Vector even[4];
        Vector odd[4];
        for (int j = 0; j < 4; j++) {
          Vector upper = split(V::load(rows[16 * j + r] + at + 8 * first));
          Vector lower = split(V::load(rows[16 * j + r + 8] + at + 8 * first));
          even[j] = V::interleaved_halves(V::low8(upper, lower));
          odd[j] = V::interleaved_halves(V::high8(upper, lower));
        }

        transpose(even);
        transpose(odd);
        for (int q = 0; q < 4; q++) {
          V::store_lanes(even[q], tiles + first, 64 * r + 16 * q);
          V::store_lanes(odd[q], tiles + first + 1, 64 * r + 16 * q);
        }
      }
    }
  }

  static void restore(const unsigned char *const *tiles, unsigned char *const *rows, int64_t at) {
    for (int first = 0; first < 8; first += 2 * V::kLanes) {
      for (int r = 0; r < 8; r++) {
        Vector even[4];
        Vector odd[4];
        for (int q = 0; q < 4; q++) {
          even[q] = V::load_lanes(tiles + first, 64 * r + 16 * q);
          odd[q] = V::load_lanes(tiles + first + 1, 64 * r + 16 * q);
        }

        transpose(even);
        transpose(odd);
        for (int j = 0; j < 4; j++) {
          Vector low = V::parted_halves(even[j]);
          Vector high = V::parted_halves(odd[j]);
          Vector mask = V::longs(0x00ff00ff00ff00ff);
          Vector upper = V::pack16(V::both(low, mask), V::both(high, mask));
          Vector lower = V::pack16(V::right16(low, 8), V::right16(high, 8));
          V::store(rows[16 * j + r] + at + 8 * first, joined(upper));
          V::store(rows[16 * j + r + 8] + at + 8 * first, joined(lower));
        }
      }
    }
  }
};

}  // namespace
}  // namespace sparkfp4
