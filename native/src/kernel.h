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

// Consecutive blocks: rows have whole blocks and no padding, so that the blocks of a segment follow each other in the
// source and in both outputs, whatever its rows and columns.
struct EncodeTask {
  const unsigned char *source;
  int64_t blocks;
  float global_scale;
  unsigned char *packed;
  unsigned char *scales;
  ErrorLanes *sums;  // null where they are not wanted; the first block of a task goes to lane 0
};

// Both give the largest magnitude as the element's bits without the sign: bits that order as the values do, and exceed
// those of the largest finite value if, and only if, an element is NaN or infinite.
using AmaxFunction = uint32_t (*)(const unsigned char *source, int64_t elements);
using EncodeFunction = uint32_t (*)(const EncodeTask &task);

struct Kernel {
  AmaxFunction amax[3];         // by sparkfp4_dtype
  EncodeFunction encode[2][3];  // by sparkfp4_recipe, sparkfp4_dtype
};

extern const Kernel kScalarKernel;
#ifdef SPARKFP4_X86
extern const Kernel kAvx2Kernel;
extern const Kernel kAvx512Kernel;
#endif

}  // namespace sparkfp4
