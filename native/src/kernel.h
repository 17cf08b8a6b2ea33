// One interface for all instruction sets: a tier is a file that fills one Kernel.
#pragma once

#include <cstdint>

#include "sparkfp4.h"

namespace sparkfp4 {

constexpr int kBlock = 16;        // elements that share a scale
constexpr int kPackedBlock = 8;   // bytes of a block's codes
constexpr int kLanes = 16;        // accumulators of an error sum

// The lanes of a segment's two sums; the lane of a block is its index in the segment modulo 16.
struct ErrorLanes {
  double squares[kLanes];
  double errors[kLanes];
};

// What elements are: a sparkfp4_dtype, or kCodeSources + a sparkfp4_codes.
constexpr int kCodeSources = 3;
constexpr int kSources = 6;

struct HessianBlock;
struct CodeTables;

// Consecutive blocks: rows have whole blocks and no padding, so that the blocks of a segment follow each other in the
// source and in both outputs, whatever its rows and columns.
struct EncodeTask {
  const unsigned char *source;
  int64_t blocks;
  float global_scale;
  sparkfp4_search search;
  const float *importance;  // of a weighted search, for row_blocks blocks; null for the others
  int64_t row_blocks;
  int64_t first_block;        // its place among the segment's, which tells its importance
  HessianBlock *hessians;     // of a search by Hessians, row_blocks of them, or null
  const float *block_scales;  // the source's, one a block, where it has codes and no e4m3_tables
  unsigned char *e4m3_tables;  // of E4M3 blocks that share scales, or null: e4m3_tables.h
  const uint32_t *e4m3_offsets;  // from there, of the blocks' tables
  CodeTables *tables;         // of a source that has them, or null
  unsigned char *packed;
  unsigned char *scales;
  ErrorLanes *sums;  // null where they are not wanted; the first block of a task goes to lane 0
};

// Both give the largest magnitude as the element's bits without the sign: bits that order as the values do, and exceed
// those of the largest finite value if, and only if, an element is NaN or infinite. An encode may leave out blocks that
// are finite.
using AmaxFunction = uint32_t (*)(const unsigned char *source, int64_t elements);
using EncodeFunction = uint32_t (*)(const EncodeTask &task);

// Of blocks of codes, as binary32 bits.
using CodeAmaxFunction = uint32_t (*)(const unsigned char *source, const float *block_scales, int64_t blocks);

// Elements in runs that share a scale, each of which begins a byte: run of them but for the last. Gives a number from
// kRoundsToInfinity on if, and only if, one of them is not finite in bfloat16.
using ToBf16Function = uint32_t (*)(const unsigned char *source, const float *scales, int64_t run, int64_t elements,
                                    unsigned char *out);

// From this magnitude on binary32, as its bits, rounds to bfloat16's infinity.
constexpr uint32_t kRoundsToInfinity = 0x7f7f8000;

// Adds the squares of E2M1 codes in blocks of 32, the first 16 elements of which go to lane 0. The E8M0 scales are from
// kMinSquareExponent to kMaxSquareExponent, for which no square and no sum of 16 rounds in binary32.
using SquaresFunction = void (*)(const unsigned char *codes, const unsigned char *scales, int64_t blocks,
                                 double *lanes);
constexpr int kMinSquareExponent = -73;
constexpr int kMaxSquareExponent = 59;

struct Kernel {
  AmaxFunction amax[kCodeSources];     // by sparkfp4_dtype
  EncodeFunction encode[2][kSources];  // by sparkfp4_recipe, source
  CodeAmaxFunction code_amax[3];       // by sparkfp4_codes
  ToBf16Function to_bf16[3];           // by sparkfp4_codes
  SquaresFunction squares;
};

// The kernel of a tier; null where it is not to be had.
const Kernel *kernel(sparkfp4_tier tier);

extern const Kernel kScalarKernel;
#ifdef SPARKFP4_X86
extern const Kernel kAvx2Kernel;
extern const Kernel kAvx512Kernel;
#endif

}  // namespace sparkfp4
