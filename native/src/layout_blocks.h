// Blocks: 64 bytes of some rows on the row-major side, pieces of equal size on the other, each of which takes a part of
// every row. A layout's block says how many and moves between them; whoever calls it deals with edges. Rows are given by
// where they begin, and the 64 bytes by their place in them.
#pragma once

#include <cstdint>
#include <cstring>

namespace sparkfp4 {
namespace {

constexpr int kChunk = 64;  // bytes of a row in a block

using Chunk = unsigned char[kChunk];

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
typedef uint16_t Halves8 __attribute__((vector_size(16)));
typedef uint32_t Words4 __attribute__((vector_size(16)));
typedef uint64_t Longs2 __attribute__((vector_size(16)));

template <typename T>
inline T load16(const unsigned char *from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
inline void store16(unsigned char *to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Elements of a and b by their numbers, those of b after those of a.
template <typename T>
inline T shuffled(T a, T b, T order) {
#ifdef __clang__
  T result = a;
  constexpr int kSize = sizeof(T) / sizeof(a[0]);
  for (int i = 0; i < kSize; i++) {
    result[i] = order[i] < kSize ? a[order[i]] : b[order[i] - kSize];
  }

  return result;
#else
  return __builtin_shuffle(a, b, order);
#endif
}

// Rows of words become columns of words.
inline void transpose(Words4 (&w)[4]) {
  Words4 a = shuffled(w[0], w[1], Words4{0, 4, 1, 5});
  Words4 b = shuffled(w[2], w[3], Words4{0, 4, 1, 5});
  Words4 c = shuffled(w[0], w[1], Words4{2, 6, 3, 7});
  Words4 d = shuffled(w[2], w[3], Words4{2, 6, 3, 7});
  w[0] = shuffled(a, b, Words4{0, 1, 4, 5});
  w[1] = shuffled(a, b, Words4{2, 3, 6, 7});
  w[2] = __builtin_shuffle(c, d, Words4{0, 1, 4, 5});
  w[3] = __builtin_shuffle(c, d, Words4{2, 3, 6, 7});
}

// Rows of bytes become columns of bytes.
inline void transpose(Bytes16 (&rows)[16]) {
  constexpr Bytes16 kLow = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  constexpr Bytes16 kHigh = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  for (int round = 0; round < 4; round++) {
    Bytes16 next[16];
    for (int i = 0; i < 8; i++) {
      next[2 * i] = shuffled(rows[i], rows[i + 8], kLow);
      next[2 * i + 1] = shuffled(rows[i], rows[i + 8], kHigh);
    }

    std::memcpy(rows, next, sizeof next);
  }
}

// Codes in tiles of 128 rows by 32 bytes; rows 4 to 7 of every 8 have their halves exchanged, or not.
template <bool kExchanges>
struct BlackwellCodes {
  static constexpr int kRows = 128;
  static constexpr int kPieces = 2;
  static constexpr bool kPieceMajor = false;

  static void move(const unsigned char *from, unsigned char *to, int row) {
    int first = kExchanges && (row >> 2 & 1) != 0 ? 16 : 0;
    Bytes16 low = load16<Bytes16>(from);
    Bytes16 high = load16<Bytes16>(from + 16);
    store16(to + first, low);
    store16(to + 16 - first, high);
  }

  void arrange(const unsigned char *const *rows, int64_t at, unsigned char *const *pieces) const {
    for (int piece = 0; piece < kPieces; piece++) {
      for (int row = 0; row < kRows; row++) {
        move(rows[row] + at + 32 * piece, pieces[piece] + 32 * row, row);
      }
    }
  }

  void restore(const unsigned char *const *pieces, unsigned char *const *rows, int64_t at) const {
    for (int piece = 0; piece < kPieces; piece++) {
      for (int row = 0; row < kRows; row++) {
        move(pieces[piece] + 32 * row, rows[row] + at + 32 * piece, row);
      }
    }
  }
};

// Scales as words of four in tiles of kTileRows by one word; in atoms the words of rows 32 apart are neighbours.
template <int kTileRows, bool kIsAtom>
struct ScaleWords {
  static constexpr int kRows = kTileRows;
  static constexpr int kPieces = kChunk / 4;
  static constexpr bool kPieceMajor = false;

  // The row of word `slot` of a piece.
  static constexpr int row_of(int slot) { return kIsAtom ? slot % 4 * 32 + slot / 4 : slot; }

  void arrange(const unsigned char *const *rows, int64_t at, unsigned char *const *pieces) const {
    for (int slot = 0; slot < kRows; slot += 4) {
      for (int piece = 0; piece < kPieces; piece += 4) {
        Words4 words[4];
        for (int i = 0; i < 4; i++) {
          words[i] = load16<Words4>(rows[row_of(slot + i)] + at + 4 * piece);
        }

        transpose(words);
        for (int i = 0; i < 4; i++) {
          store16(pieces[piece + i] + 4 * slot, words[i]);
        }
      }
    }
  }

  void restore(const unsigned char *const *pieces, unsigned char *const *rows, int64_t at) const {
    for (int slot = 0; slot < kRows; slot += 4) {
      for (int piece = 0; piece < kPieces; piece += 4) {
        Words4 words[4];
        for (int i = 0; i < 4; i++) {
          words[i] = load16<Words4>(pieces[piece + i] + 4 * slot);
        }

        transpose(words);
        for (int i = 0; i < 4; i++) {
          store16(rows[row_of(slot + i)] + at + 4 * piece, words[i]);
        }
      }
    }
  }
};

// E4M3 bytes as they are.
struct SameScale {
  Bytes16 encode(Bytes16 scale) const { return scale; }
  Bytes16 decode(Bytes16 stored) const { return stored; }
};

// E4M3 bytes to and from those of org.sparkfp4.formats.MarlinScale. With B the byte of 2^-6, a normal scale is its own
// code and B, and the seven subnormal ones are spread below.
class MarlinScale {
 public:
  // exponent: of the factor, 0 to 17.
  explicit MarlinScale(int exponent)
      : base_(static_cast<uint8_t>((15 + exponent) * 8)),
        // The code of 448 / factor; among the subnormal scales a factor of 2 halves the code.
        limit_(static_cast<uint8_t>(exponent <= 14 ? 0x7e - 8 * exponent : 7 >> (exponent - 15))) {}

  Bytes16 encode(Bytes16 x) const {
    Bytes16 y = x + base_;
    y = x < 8 ? (x - 4) * 2 + base_ : y;
    y = x < 4 ? (x - 2) * 4 + base_ - 8 : y;
    y = x < 2 ? Bytes16{} + static_cast<uint8_t>(base_ - 16) : y;
    y = x == 0 ? Bytes16{} : y;
    return x > limit_ ? Bytes16{} - 1 : y;
  }

  Bytes16 decode(Bytes16 y) const {
    Bytes16 d = y - base_;
    Bytes16 none = Bytes16{} + 0x7f;
    Bytes16 x = (d >= 8) & (d <= limit_) ? d : none;
    for (int code = 1; code < 8 && code <= limit_; code++) {
      int below = code >= 4 ? 2 * (code - 4) : code >= 2 ? 4 * (code - 2) - 8 : -16;
      x = d == static_cast<uint8_t>(below) ? Bytes16{} + static_cast<uint8_t>(code) : x;
    }

    return y == 0 ? Bytes16{} : x;
  }

 private:
  uint8_t base_;
  uint8_t limit_;
};

// Scales in Marlin's order: a piece is a column of 64 rows.
template <typename Scale>
struct MarlinScales {
  static constexpr int kRows = 64;
  static constexpr int kPieces = kChunk;
  static constexpr bool kPieceMajor = true;

  Scale scale;

  // The row of byte `slot`: blocks of 8 rows are transposed, and their bits 0 and 1 exchanged.
  static constexpr int row_of(int slot) {
    int block = slot % 8;
    return ((block & 4) | (block & 1) << 1 | (block >> 1 & 1)) * 8 + slot / 8;
  }

  // Lines are made and taken apart here, and moved whole: those of a block are often multiples of 4096 bytes apart, where
  // a cache holds few at once.
  void arrange(const unsigned char *const *rows, int64_t at, unsigned char *const *pieces) const {
    alignas(64) Chunk lines[kPieces];
    for (int slot = 0; slot < kRows; slot += 16) {
      for (int column = 0; column < kChunk; column += 16) {
        Bytes16 bytes[16];
        for (int i = 0; i < 16; i++) {
          bytes[i] = scale.encode(load16<Bytes16>(rows[row_of(slot + i)] + at + column));
        }

        transpose(bytes);
        for (int i = 0; i < 16; i++) {
          store16(lines[column + i] + slot, bytes[i]);
        }
      }
    }

    for (int i = 0; i < kPieces; i++) {
      std::memcpy(pieces[i], lines[i], kChunk);
    }
  }

  void restore(const unsigned char *const *pieces, unsigned char *const *rows, int64_t at) const {
    alignas(64) Chunk lines[kPieces];
    for (int i = 0; i < kPieces; i++) {
      std::memcpy(lines[i], pieces[i], kChunk);
    }

    for (int slot = 0; slot < kRows; slot += 16) {
      for (int column = 0; column < kChunk; column += 16) {
        Bytes16 bytes[16];
        for (int i = 0; i < 16; i++) {
          bytes[i] = load16<Bytes16>(lines[column + i] + slot);
        }

        transpose(bytes);
        for (int i = 0; i < 16; i++) {
          store16(rows[row_of(slot + i)] + at + column, scale.decode(bytes[i]));
        }
      }
    }
  }
};

}  // namespace
}  // namespace sparkfp4
