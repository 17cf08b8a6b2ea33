// The moves of blocks, for vectors of any width: anonymous, so that no instance is shared between instruction sets.
//
// A line of 64 bytes is four quarters of 16, in as many vectors V as it takes. Quarters are gathered from wherever they
// lie; then no operation but the three that say so crosses a quarter, and lines are stored whole.
#pragma once

#include <cstring>
#include <type_traits>

#include "layout_kernel.h"
#include "layout_values.h"

namespace sparkfp4 {
namespace {

template <typename V>
struct Line {
  typename V::Vector of[V::kVectors];
};

#define SPARKFP4_EACH_VECTOR _Pragma("GCC unroll 4") for (int i = 0; i < V::kVectors; i++)
#define SPARKFP4_LINE_OP __attribute__((always_inline)) static inline

template <typename V>
SPARKFP4_LINE_OP Line<V> load(const unsigned char *from) {
  Line<V> line;
  SPARKFP4_EACH_VECTOR { line.of[i] = V::load(from + i * (kLine / V::kVectors)); }
  return line;
}

template <typename V, bool kStreams>
SPARKFP4_LINE_OP void put(unsigned char *to, const Line<V> &line) {
  SPARKFP4_EACH_VECTOR {
    if constexpr (kStreams) {
      V::stream(to + i * (kLine / V::kVectors), line.of[i]);
    } else {
      V::store(to + i * (kLine / V::kVectors), line.of[i]);
    }
  }
}

// Vector i of a line whose quarter s is at place(s).
template <typename V, typename Place>
SPARKFP4_LINE_OP typename V::Vector gathered(int i, const Place &place) {
  constexpr int kQuarters = 4 / V::kVectors;
  const unsigned char *places[kQuarters];
  for (int s = 0; s < kQuarters; s++) {
    places[s] = place(i * kQuarters + s);
  }

  return V::quarters(places);
}

template <typename V, typename Place>
SPARKFP4_LINE_OP Line<V> gathered(const Place &place) {
  Line<V> line;
  SPARKFP4_EACH_VECTOR { line.of[i] = gathered<V>(i, place); }
  return line;
}

#define SPARKFP4_OF_TWO(name)                                               \
  template <typename V>                                                     \
  SPARKFP4_LINE_OP Line<V> name(const Line<V> &x, const Line<V> &y) {       \
    Line<V> line;                                                           \
    SPARKFP4_EACH_VECTOR { line.of[i] = V::name(x.of[i], y.of[i]); }        \
    return line;                                                            \
  }
#define SPARKFP4_OF_ONE(name)                                               \
  template <typename V>                                                     \
  SPARKFP4_LINE_OP Line<V> name(const Line<V> &x) {                         \
    Line<V> line;                                                           \
    SPARKFP4_EACH_VECTOR { line.of[i] = V::name(x.of[i]); }                 \
    return line;                                                            \
  }
SPARKFP4_OF_TWO(low8)
SPARKFP4_OF_TWO(high8)
SPARKFP4_OF_TWO(low32)
SPARKFP4_OF_TWO(high32)
SPARKFP4_OF_TWO(low64)
SPARKFP4_OF_TWO(high64)
// 16-bit elements 0 to 3 between 4 to 7; bytes by 4 i + j to 8 (j & 1) + 4 (j >> 1) + i, which undoes low8 and that.
SPARKFP4_OF_ONE(interleaved_halves)
SPARKFP4_OF_ONE(parted_bytes)
// Of eight bytes b: low halves of (b0, b4), (b1, b5), (b2, b6), (b3, b7), then the high halves; and back.
SPARKFP4_OF_ONE(exchanged)
#undef SPARKFP4_OF_TWO
#undef SPARKFP4_OF_ONE

// Rows of words become columns of words, within quarters.
template <typename V>
SPARKFP4_LINE_OP void transpose_words(Line<V> (&w)[4]) {
  Line<V> a = low32(w[0], w[1]);
  Line<V> b = low32(w[2], w[3]);
  Line<V> c = high32(w[0], w[1]);
  Line<V> d = high32(w[2], w[3]);
  w[0] = low64(a, b);
  w[1] = high64(a, b);
  w[2] = low64(c, d);
  w[3] = high64(c, d);
}

// Quarter s of line j from place(s, j); then rows of bytes become columns of bytes, within quarters. A vector of each
// line at a time: those of all lines would not find registers.
template <typename V, typename Place>
SPARKFP4_LINE_OP void gather_transposed(const Place &place, Line<V> (&lines)[16]) {
  SPARKFP4_EACH_VECTOR {
    typename V::Vector x[16];
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) {
      x[j] = gathered<V>(i, [&](int s) { return place(s, j); });
    }

#pragma GCC unroll 4
    for (int round = 0; round < 4; round++) {
      typename V::Vector next[16];
#pragma GCC unroll 8
      for (int j = 0; j < 8; j++) {
        next[2 * j] = V::low8(x[j], x[j + 8]);
        next[2 * j + 1] = V::high8(x[j], x[j + 8]);
      }

#pragma GCC unroll 16
      for (int j = 0; j < 16; j++) {
        x[j] = next[j];
      }
    }

#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) {
      lines[j].of[i] = x[j];
    }
  }
}

// Words 4 i + j go to 4 j + i, across quarters.
template <typename V>
SPARKFP4_LINE_OP Line<V> words_across(Line<V> x) {
  V::transpose_words_across(x.of);
  return x;
}

// Leaves bytes as they are.
struct SameScale {
  explicit SameScale(const MarlinScale *) {}

  template <typename Vector>
  Vector operator()(Vector x) const {
    return x;
  }
};

template <typename V, typename Scale>
SPARKFP4_LINE_OP Line<V> translated(Line<V> x, const Scale &scale) {
  SPARKFP4_EACH_VECTOR { x.of[i] = scale(x.of[i]); }
  return x;
}

// Codes in tiles of 128 rows by 32 bytes; rows 4 to 7 of every 8 have their halves exchanged, or not.
template <typename V, bool kStreams, bool kExchanges>
struct BlackwellCodes {
  static constexpr const BlockShape &kShape = kBlackwellCodes;

  static int first(int row) { return kExchanges && (row & 4) != 0 ? 16 : 0; }

  static void arrange(const unsigned char *const *rows, int64_t at, unsigned char *pieces, int64_t stride,
                      const MarlinScale *) {
    for (int row = 0; row < kShape.rows; row += 2) {
      for (int piece = 0; piece < 2; piece++) {
        int64_t begin = at + 32 * piece;
        put<V, kStreams>(pieces + piece * stride + 32 * row, gathered<V>([&](int s) {
                           return rows[row + s / 2] + begin + (s % 2 == 0 ? first(row) : 16 - first(row));
                         }));
      }
    }
  }

  static void restore(const unsigned char *pieces, int64_t stride, unsigned char *const *rows, int64_t at,
                      const MarlinScale *) {
    for (int row = 0; row < kShape.rows; row++) {
      put<V, kStreams>(rows[row] + at, gathered<V>([&](int s) {
                         return pieces + s / 2 * stride + 32 * row + (s % 2 == 0 ? first(row) : 16 - first(row));
                       }));
    }
  }
};

// Scales as words of four in tiles of 128 rows by one word; in atoms the words of rows 32 apart are neighbours.
template <typename V, bool kStreams, bool kIsAtom>
struct ScaleWords {
  static constexpr const BlockShape &kShape = kAtoms;

  // The row of word `slot` of a piece.
  static int row_of(int slot) { return kIsAtom ? slot % 4 * 32 + slot / 4 : slot; }

  static void arrange(const unsigned char *const *rows, int64_t at, unsigned char *pieces, int64_t stride,
                      const MarlinScale *) {
    for (int slot = 0; slot < kShape.rows; slot += 16) {
      for (int piece = 0; piece < kShape.pieces; piece += 4) {
        Line<V> x[4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
          x[j] = gathered<V>([&](int s) { return rows[row_of(slot + 4 * s + j)] + at + 4 * piece; });
        }

        transpose_words(x);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
          put<V, kStreams>(pieces + (piece + j) * stride + 4 * slot, x[j]);
        }
      }
    }
  }

  static void restore(const unsigned char *pieces, int64_t stride, unsigned char *const *rows, int64_t at,
                      const MarlinScale *) {
    for (int slot = 0; slot < kShape.rows; slot += 4) {
      Line<V> x[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        x[j] = gathered<V>([&](int s) { return pieces + (4 * s + j) * stride + 4 * slot; });
      }

      transpose_words(x);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        put<V, kStreams>(rows[row_of(slot + j)] + at, x[j]);
      }
    }
  }
};

// The same in tiles of 8 rows, two of which are a line.
template <typename V, bool kStreams>
struct SmallTiles {
  static constexpr const BlockShape &kShape = kSmallTiles;

  static void arrange(const unsigned char *const *rows, int64_t at, unsigned char *pieces, int64_t stride,
                      const MarlinScale *) {
#pragma GCC unroll 2
    for (int piece = 0; piece < kShape.pieces; piece += 8) {
      Line<V> x[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        x[j] = gathered<V>([&](int s) { return rows[s % 2 * 4 + j] + at + 4 * piece + s / 2 * 16; });
      }

      transpose_words(x);
#pragma GCC unroll 2
      for (int j = 0; j < 4; j += 2) {
        Line<V> joined[2];
        V::join_halves(x[j].of, x[j + 1].of, joined[0].of, joined[1].of);
        put<V, kStreams>(pieces + (piece + j) * stride, joined[0]);
        put<V, kStreams>(pieces + (piece + 4 + j) * stride, joined[1]);
      }
    }
  }

  static void restore(const unsigned char *pieces, int64_t stride, unsigned char *const *rows, int64_t at,
                      const MarlinScale *) {
#pragma GCC unroll 2
    for (int row = 0; row < kShape.rows; row += 4) {
      Line<V> x[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        x[j] = gathered<V>([&](int s) { return pieces + (4 * s + j) * stride + 4 * row; });
      }

      transpose_words(x);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        put<V, kStreams>(rows[row + j] + at, x[j]);
      }
    }
  }
};

// Scales in Marlin's order, a piece being a column of 64 rows; as they are or in Marlin's own bytes.
template <typename V, bool kStreams, bool kEncodes>
struct MarlinScales {
  static constexpr const BlockShape &kShape = kMarlinScales;

  // The row of byte `slot`: blocks of 8 rows are transposed, and their bits 0 and 1 exchanged.
  static int row_of(int slot) {
    int block = slot % 8;
    return ((block & 4) | (block & 1) << 1 | (block >> 1 & 1)) * 8 + slot / 8;
  }

  static void arrange(const unsigned char *const *rows, int64_t at, unsigned char *pieces, int64_t stride,
                      const MarlinScale *scale) {
    const std::conditional_t<kEncodes, typename V::ScaleEncoder, SameScale> encoder(scale);
    for (int column = 0; column < kLine; column += 16) {
      Line<V> x[16];
      gather_transposed([&](int s, int j) { return rows[row_of(16 * s + j)] + at + column; }, x);
#pragma GCC unroll 16
      for (int j = 0; j < 16; j++) {
        put<V, kStreams>(pieces + (column + j) * stride, translated(x[j], encoder));
      }
    }
  }

  // Lines are often multiples of 4096 bytes apart, where a cache holds few at once: they come in whole.
  static void restore(const unsigned char *pieces, int64_t stride, unsigned char *const *rows, int64_t at,
                      const MarlinScale *scale) {
    const std::conditional_t<kEncodes, typename V::ScaleDecoder, SameScale> decoder(scale);
    alignas(kLine) unsigned char lines[kLine * kLine];
    for (int column = 0; column < kLine; column++) {
      put<V, false>(lines + column * kLine, load<V>(pieces + column * stride));
    }

    for (int slot = 0; slot < kShape.rows; slot += 16) {
      Line<V> x[16];
      gather_transposed([&](int s, int j) { return lines + (16 * s + j) * kLine + slot; }, x);
#pragma GCC unroll 16
      for (int j = 0; j < 16; j++) {
        put<V, kStreams>(rows[row_of(slot + j)] + at, translated(x[j], decoder));
      }
    }
  }
};

// Eight of Marlin's tiles of codes, 64 rows by 16 columns, 512 bytes: 64 for each r of 0 to 7, of which word 4 q + j
// has rows 16 j + r and 8 below, bytes q and q + 4 of each: the low halves of these four bytes, then the high ones.
template <typename V, bool kStreams>
struct MarlinCodes {
  static constexpr const BlockShape &kShape = kMarlinCodes;

  static void arrange(const unsigned char *const *rows, int64_t at, unsigned char *pieces, int64_t stride,
                      const MarlinScale *) {
    for (int r = 0; r < 8; r++) {
#pragma GCC unroll 4
      for (int tile = 0; tile < 8; tile += 2) {
        // Quarter j has two tiles' 8 bytes of row 16 j + r, or of that 8 below.
        Line<V> upper = exchanged(gathered<V>([&](int j) { return rows[16 * j + r] + at + 8 * tile; }));
        Line<V> lower = exchanged(gathered<V>([&](int j) { return rows[16 * j + r + 8] + at + 8 * tile; }));
        Line<V> even = interleaved_halves(low8(upper, lower));
        Line<V> odd = interleaved_halves(high8(upper, lower));
        put<V, kStreams>(pieces + tile * stride + 64 * r, words_across(even));
        put<V, kStreams>(pieces + (tile + 1) * stride + 64 * r, words_across(odd));
      }
    }
  }

  static void restore(const unsigned char *pieces, int64_t stride, unsigned char *const *rows, int64_t at,
                      const MarlinScale *) {
    for (int r = 0; r < 8; r++) {
      Line<V> upper[4];
      Line<V> lower[4];
#pragma GCC unroll 4
      for (int tile = 0; tile < 8; tile += 2) {
        Line<V> even = parted_bytes(words_across(load<V>(pieces + tile * stride + 64 * r)));
        Line<V> odd = parted_bytes(words_across(load<V>(pieces + (tile + 1) * stride + 64 * r)));
        upper[tile / 2] = exchanged(low64(even, odd));
        lower[tile / 2] = exchanged(high64(even, odd));
      }

      V::transpose_quarters(upper[0].of, upper[1].of, upper[2].of, upper[3].of);
      V::transpose_quarters(lower[0].of, lower[1].of, lower[2].of, lower[3].of);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) {
        put<V, kStreams>(rows[16 * j + r] + at, upper[j]);
        put<V, kStreams>(rows[16 * j + r + 8] + at, lower[j]);
      }
    }
  }
};

template <typename V>
void stream_lines(unsigned char *to, const unsigned char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kLine) {
    put<V, true>(to + i, load<V>(from + i));
  }
}

template <template <typename, bool, bool...> class Moves, typename V, bool... kForm>
constexpr BlockMoves moves() {
  return {&Moves<V, false, kForm...>::kShape,
          {Moves<V, false, kForm...>::arrange, Moves<V, true, kForm...>::arrange},
          {Moves<V, false, kForm...>::restore, Moves<V, true, kForm...>::restore}};
}

template <typename V>
constexpr LayoutKernel layout_kernel() {
  return {{{}, moves<BlackwellCodes, V, true>(), moves<BlackwellCodes, V, false>(), moves<MarlinCodes, V>()},
          {{},
           moves<ScaleWords, V, true>(),
           moves<SmallTiles, V>(),
           moves<ScaleWords, V, false>(),
           moves<MarlinScales, V, false>(),
           moves<MarlinScales, V, true>()},
          stream_lines<V>,
          V::fence,
          {values_to_f32<V, false>, values_to_f32<V, true>},
          {values_to_bf16<V, false>, values_to_bf16<V, true>}};
}

}  // namespace
}  // namespace sparkfp4
