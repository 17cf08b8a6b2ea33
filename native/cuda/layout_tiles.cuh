// Layouts: where their pieces of 16 bytes are in a tile of rows by 128 bytes, and what is in them.
#pragma once

#include "layout_pieces.cuh"
#include "layouts.h"
#include "marlin_words.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 128;               // bytes of a row in a tile
constexpr int kRowPieces = kWidth / 16;

// A layout's tile in shared memory; a pitch of whole words, or of whole pieces.
template <typename Layout>
struct Tile {
  static constexpr int kPitch = Layout::kPitch;


  unsigned char *bytes;

  __device__ uint4 row_piece(int row, int piece) const {
    const unsigned char *from = bytes + row * kPitch + 16 * (piece ^ Layout::swizzle(row));
    if (kPitch % 16 == 0) {
      return *reinterpret_cast<const uint4 *>(from);
    }

    const uint32_t *words = reinterpret_cast<const uint32_t *>(from);
    return {words[0], words[1], words[2], words[3]};
  }

  __device__ void put_row_piece(int row, int piece, uint4 value) const {
    unsigned char *to = bytes + row * kPitch + 16 * (piece ^ Layout::swizzle(row));
    if (kPitch % 16 == 0) {
      *reinterpret_cast<uint4 *>(to) = value;
      return;
    }

    uint32_t *words = reinterpret_cast<uint32_t *>(to);
    words[0] = value.x;
    words[1] = value.y;
    words[2] = value.z;
    words[3] = value.w;
  }

  __device__ uint32_t *word(int row, int index) const {
    return reinterpret_cast<uint32_t *>(bytes + row * kPitch + 4 * (index ^ 4 * Layout::swizzle(row)));
  }
};

// Where a tile is: its first row, and the first byte of its rows.
struct Place {
  int64_t row;
  int64_t at;
};

// A layout has kRows and kPitch of a tile, and its pieces on the arranged side, as many as on the other, in items of
// kAtOnce:
//   offset(shape, place, item, i)            where piece i of an item is, or -1 where the matrix has none
//   get(tile, item, pieces), put(tile, item, pieces)
//   swizzle(row)                             which the numbers of a row's pieces are crossed with in the tile
// and says of its kernels, as was measured,
//   kTiles                                   how many tiles of the same rows a block of threads takes in turn
//   kBlocks                                  how many blocks a multiprocessor is to hold
//
// Most have items of one piece, in the same places.
struct OnePiece {
  static constexpr int kAtOnce = 1;
  static constexpr int kTiles = 1;
  static constexpr int kBlocks = 5;

  static __device__ int swizzle(int) { return 0; }
};

template <bool kExchanges>
struct BlackwellCodes : OnePiece {
  static constexpr int kRows = 128;
  static constexpr int kPitch = kWidth + 16;

  // 2 a row and tile of 64 columns; rows follow each other.
  static __device__ int row(int piece) { return piece / 2 % kRows; }
  static __device__ int row_piece(int piece) {
    int half = kExchanges ? piece ^ row(piece) >> 2 : piece;
    return piece / (2 * kRows) * 2 + (half & 1);
  }

  static __device__ int64_t offset(const RowShape &shape, Place place, int piece, int) {
    int64_t k_tile = place.at / 32 + piece / (2 * kRows);
    int64_t k_tiles = shape.padded_row_bytes / 32;
    return k_tile < k_tiles ? ((place.row / kRows * k_tiles + k_tile) * 2 * kRows + piece % (2 * kRows)) * 16 : -1;
  }

  template <typename Tile>
  __device__ void get(Tile tile, int piece, uint4 *value) const {
    *value = tile.row_piece(row(piece), row_piece(piece));
  }

  template <typename Tile>
  __device__ void put(Tile tile, int piece, const uint4 *value) const {
    tile.put_row_piece(row(piece), row_piece(piece), *value);
  }
};

struct MarlinCodes : OnePiece {
  static constexpr int kRows = 64;
  static constexpr int kPitch = kWidth + 16;
  // What follows a tile's pieces in memory is of the next rows.
  static constexpr int kTiles = 4;
  static constexpr int kBlocks = 6;

  // 32 a tile of 16 columns: 4 r + q.
  static __device__ int64_t offset(const RowShape &shape, Place place, int piece, int) {
    int64_t k_tile = place.at / 8 + piece / 32;
    bool is_there = k_tile < shape.padded_row_bytes / 8;
    return is_there ? ((k_tile * (shape.matrix_rows / kRows) + place.row / kRows) * 32 + piece % 32) * 16 : -1;
  }

  // Word j has bytes q and q + 4 of rows 16 j + r and 8 below: the low halves, then the high ones.
  template <typename Tile>
  __device__ void get(Tile tile, int piece, uint4 *value) const {
    int r = piece / 4 % 8;
    int q = piece % 4;
    uint32_t selector = q | (q + 4) << 4;
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const uint32_t *upper = tile.word(16 * j + r, piece / 32 * 2);
      const uint32_t *lower = tile.word(16 * j + r + 8, piece / 32 * 2);
      uint32_t bytes = permute(permute(upper[0], upper[1], selector), permute(lower[0], lower[1], selector), 0x5410);
      uint32_t low = bytes & 0x0f0f0f0f;
      uint32_t high = bytes >> 4 & 0x0f0f0f0f;
      words[j] = __byte_perm(low | low >> 4, high | high >> 4, 0x6420);
    }

    *value = {words[0], words[1], words[2], words[3]};
  }

  template <typename Tile>
  __device__ void put(Tile tile, int piece, const uint4 *value) const {
    int r = piece / 4 % 8;
    int q = piece % 4;
    uint32_t words[4] = {value->x, value->y, value->z, value->w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned char *upper = tile.bytes + (16 * j + r) * kPitch + piece / 32 * 8 + q;
      unsigned char *lower = upper + 8 * kPitch;
      uint32_t even = words[j] & 0x0f0f;
      even |= words[j] >> 12 & 0xf0f0;
      uint32_t odd = words[j] >> 4 & 0x0f0f;
      odd |= words[j] >> 16 & 0xf0f0;
      upper[0] = static_cast<unsigned char>(even);
      upper[4] = static_cast<unsigned char>(odd);
      lower[0] = static_cast<unsigned char>(even >> 8);
      lower[4] = static_cast<unsigned char>(odd >> 8);
    }
  }
};

// Words of four scales in tiles of kTileRows by one; in atoms the words of rows 32 apart are neighbours.
template <int kTileRows, bool kIsAtom>
struct ScaleWords : OnePiece {
  static constexpr int kRows = 128;
  static constexpr int kPitch = kWidth + 4;
  static constexpr int kWords = kWidth / 4;
  static constexpr int kPiecesOfWord = kTileRows / 4;

  static __device__ int word(int piece) { return piece / kPiecesOfWord % kWords; }
  // The row of word i of a piece.
  static __device__ int row(int piece, int i) {
    int in_tile = piece % kPiecesOfWord;
    return kIsAtom ? in_tile + 32 * i : piece / (kPiecesOfWord * kWords) * kTileRows + 4 * in_tile + i;
  }

  static __device__ int64_t offset(const RowShape &shape, Place place, int piece, int) {
    int64_t row_tile = place.row / kTileRows + piece / (kPiecesOfWord * kWords);
    int64_t words = shape.padded_row_bytes / 4;
    int64_t index = place.at / 4 + word(piece);
    bool is_there = index < words && row_tile < shape.matrix_rows / kTileRows;
    return is_there ? ((row_tile * words + index) * kPiecesOfWord + piece % kPiecesOfWord) * 16 : -1;
  }

  template <typename Tile>
  __device__ void get(Tile tile, int piece, uint4 *value) const {
    int index = word(piece);
    *value = {*tile.word(row(piece, 0), index), *tile.word(row(piece, 1), index), *tile.word(row(piece, 2), index),
              *tile.word(row(piece, 3), index)};
  }

  template <typename Tile>
  __device__ void put(Tile tile, int piece, const uint4 *value) const {
    int index = word(piece);
    *tile.word(row(piece, 0), index) = value->x;
    *tile.word(row(piece, 1), index) = value->y;
    *tile.word(row(piece, 2), index) = value->z;
    *tile.word(row(piece, 3), index) = value->w;
  }
};

struct SameScale {
  template <int kCount>
  __device__ void encode(uint32_t *) const {}
  template <int kCount>
  __device__ void decode(uint32_t *) const {}
};

struct VllmScale {
  MarlinWords words;

  template <int kCount>
  __device__ void encode(uint32_t *scales) const { encode_words<kCount>(words, scales); }
  template <int kCount>
  __device__ void decode(uint32_t *bytes) const { decode_words<kCount>(words, bytes); }
};

// Rows of bytes become columns of bytes.
__device__ __forceinline__ void transpose(uint32_t *words) {
  uint32_t first = __byte_perm(words[0], words[1], 0x5140);
  uint32_t second = __byte_perm(words[2], words[3], 0x5140);
  uint32_t third = __byte_perm(words[0], words[1], 0x7362);
  uint32_t fourth = __byte_perm(words[2], words[3], 0x7362);
  words[0] = __byte_perm(first, second, 0x5410);
  words[1] = __byte_perm(first, second, 0x7632);
  words[2] = __byte_perm(third, fourth, 0x5410);
  words[3] = __byte_perm(third, fourth, 0x7632);
}

// Scales in Marlin's order: a column of 64 rows is 4 pieces. A thread takes those of the same rows of 4 columns, which
// are a word of each row.
template <typename Scale>
struct MarlinScales {
  static constexpr int kRows = 128;
  static constexpr int kPitch = kWidth;
  static constexpr int kAtOnce = 4;
  static constexpr int kTiles = 1;
  static constexpr int kBlocks = 5;

  Scale scale;

  // Threads that read words at once have rows 2 or 64 apart.
  static __device__ int swizzle(int row) { return row / 2 % 4 | row / 64 % 2 * 4; }

  // Slot 8 h + b of a piece has a row of block b: bits 0 and 1 of its number are exchanged.
  static __device__ int row(int item, int h, int b) {
    int piece = item % 8;
    return piece / 4 * 64 + ((b & 4) | (b & 1) << 1 | (b >> 1 & 1)) * 8 + piece % 4 * 2 + h;
  }

  static __device__ int64_t offset(const RowShape &shape, Place place, int item, int i) {
    int64_t column = place.at + item / 8 * 4 + i;
    int64_t row = place.row + item % 8 * 16;
    return column < shape.padded_row_bytes && row < shape.matrix_rows ? column * shape.matrix_rows + row : -1;
  }

  template <typename Tile>
  __device__ void get(Tile tile, int item, uint4 *pieces) const {
    uint32_t words[16];
#pragma unroll
    for (int part = 0; part < 4; part++) {
#pragma unroll
      for (int b = 0; b < 4; b++) {
        words[4 * part + b] = *tile.word(row(item, part / 2, part % 2 * 4 + b), item / 8);
      }
    }

    scale.template encode<16>(words);
#pragma unroll
    for (int part = 0; part < 4; part++) {
      transpose(words + 4 * part);
    }

#pragma unroll
    for (int i = 0; i < 4; i++) {
      pieces[i] = {words[i], words[4 + i], words[8 + i], words[12 + i]};
    }
  }

  template <typename Tile>
  __device__ void put(Tile tile, int item, const uint4 *pieces) const {
    uint32_t words[16];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      words[i] = pieces[i].x;
      words[4 + i] = pieces[i].y;
      words[8 + i] = pieces[i].z;
      words[12 + i] = pieces[i].w;
    }

    scale.template decode<16>(words);
#pragma unroll
    for (int part = 0; part < 4; part++) {
      transpose(words + 4 * part);
#pragma unroll
      for (int b = 0; b < 4; b++) {
        *tile.word(row(item, part / 2, part % 2 * 4 + b), item / 8) = words[4 * part + b];
      }
    }
  }
};

}  // namespace
}  // namespace sparkfp4::cuda
