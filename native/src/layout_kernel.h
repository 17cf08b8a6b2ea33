// What the kernels of layouts have of an instruction set: a tier is a file that fills one LayoutKernel.
//
// Layouts are moved by blocks: a line of 64 bytes of some rows on the row-major side; on the other as many bytes in
// pieces of equal size, each of which takes a part of every row, the pieces a stride apart. Whoever calls deals with
// edges.
#pragma once

#include <cstdint>

#include "marlin_scale.h"
#include "sparkfp4_layouts.h"

namespace sparkfp4 {

constexpr int kLine = 64;  // bytes of a row in a block, and of a line of the caches

// A layout's blocks.
struct BlockShape {
  int tile_rows;
  int rows;  // of a block: a tile's, or a part of them
  int pieces;
  // Whether the pieces of a place in the row follow each other through all tiles; else those of a tile do.
  bool is_piece_major;
  // Blocks one above the other that are moved before those beside them, so that more than a line of each piece is.
  int together;

  int width() const { return kLine / pieces; }       // of a row in a piece
  int piece_bytes() const { return rows * width(); }  // of a block's part of a piece
};

constexpr int kMostRows = 128;
constexpr int kMostTogether = 8;

// Of Blackwell's tiles a part: rows are often a multiple of 512 bytes apart, where a cache holds few of them at once.
constexpr BlockShape kBlackwellCodes = {128, 32, 2, false, 1};
constexpr BlockShape kMarlinCodes = {64, 64, 8, true, 1};
constexpr BlockShape kAtoms = {128, 128, 16, false, 1};
constexpr BlockShape kSmallTiles = {8, 8, 16, false, 1};
constexpr BlockShape kMarlinScales = {64, 64, 64, true, 8};

// at: the place of the line in the rows.
// scale: of Marlin's own scales, null for the others.
using ArrangeFunction = void (*)(const unsigned char *const *rows, int64_t at, unsigned char *pieces, int64_t stride,
                                 const MarlinScale *scale);
using RestoreFunction = void (*)(const unsigned char *pieces, int64_t stride, unsigned char *const *rows, int64_t at,
                                 const MarlinScale *scale);

// The ways of a block. Of each the first goes through the caches; the second writes lines, at addresses that are
// multiples of 64, past them, which spares memory the reading of what is overwritten.
struct BlockMoves {
  const BlockShape *shape;
  ArrangeFunction arrange[2];
  RestoreFunction restore[2];
};

// Blocks of 16 codes, an even number, times their scales, which are E4M3 bytes times a global scale; as many as make
// whole kScaleGroups may be read. Of each type the second writes past the caches to addresses that are multiples of 64.
using DecodeFunction = void (*)(const unsigned char *codes, const unsigned char *scales, float global, int64_t blocks,
                                unsigned char *out);
constexpr int64_t kScaleGroup = 16;

struct LayoutKernel {
  BlockMoves codes[4];   // by sparkfp4_code_layout, but for row-major
  BlockMoves scales[6];  // by sparkfp4_scale_layout, but for row-major
  // Whole lines, past the caches; from any address to a multiple of 64.
  void (*stream)(unsigned char *to, const unsigned char *from, int64_t bytes);
  // Makes what was written past the caches seen before what is written next.
  void (*fence)();
  DecodeFunction to_f32[2];
  DecodeFunction to_bf16[2];
};

// The kernel of a tier; null where it is not to be had.
const LayoutKernel *layout_kernel(sparkfp4_tier tier);

// From so many bytes on, what is written is written past the caches: with its source it would not fit a second-level
// cache of 2 MiB.
constexpr int64_t kStreamedBytes = 1 << 20;

inline bool is_line(const void *address) { return reinterpret_cast<uintptr_t>(address) % kLine == 0; }

extern const LayoutKernel kLayoutScalar;
#ifdef SPARKFP4_X86
extern const LayoutKernel kLayoutAvx2;
extern const LayoutKernel kLayoutAvx512;
#endif

}  // namespace sparkfp4
