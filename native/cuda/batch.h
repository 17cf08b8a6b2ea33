// What kernels work on: segments of one unit, cut into tiles, and where results go. Host and device share it.
#pragma once

#include <cuda_runtime_api.h>

#include "../src/kernel.h"
#include "sparkfp4_cuda.h"

namespace sparkfp4::cuda {

constexpr int kThreads = 256;
constexpr int kTileBlocks = 2 * kThreads;  // two a thread
constexpr int kAmaxVectors = 4;        // 16-byte loads of a thread at once
constexpr int64_t kAmaxTileBytes = 16 * kAmaxVectors * kThreads;
constexpr int kMaxSegments = 16;       // of a launch

// Blocks of a launch's segment, so that 32-bit numbers count them; a longer one is cut, at multiples of kLanes.
constexpr int64_t kMaxSegmentBlocks = int64_t{1} << 30;

// n / divisor for n below 2^31, by a product.
struct FastDivisor {
  uint32_t divisor;
  uint32_t multiplier;
  uint32_t shift;
};

// divisor from 1 to 2^31; 0 divides to 0.
inline FastDivisor fast_divisor(int64_t divisor) {
  if (divisor == 0 || divisor >= int64_t{1} << 31) {
    return {0, 0, 32};
  }

  uint32_t bits = 0;
  while (int64_t{1} << bits < divisor) {
    bits++;
  }

  uint64_t multiplier = ((uint64_t{1} << (31 + bits)) + divisor - 1) / divisor;
  return {static_cast<uint32_t>(divisor), static_cast<uint32_t>(multiplier), 31 + bits};
}

struct DeviceSegment {
  const unsigned char *data;    // elements or codes
  const unsigned char *scales;  // of codes
  int64_t elements;
  int64_t first_block;    // in both outputs
  int64_t first_element;  // of this piece in its segment
  uint32_t blocks;        // where elements are blocks
  uint32_t first_tile;
  int32_t number;         // the segment's, for results
};

// The elements of a source. Rows are whole blocks, which so follow each other.
struct Source {
  int32_t kind;                     // a sparkfp4_dtype, or kCodeSources + a sparkfp4_codes
  sparkfp4_scale_type scale_type;   // of codes, as are the following
  FastDivisor row_blocks;           // blocks of a row; also where there is importance
  FastDivisor block_rows;           // rows that share a scale
  FastDivisor per_scale;            // blocks of a row that share a scale
  int32_t row_scales;               // scales of a row
};

struct Batch {
  uint32_t tiles;  // 2^31 of them would be 35 TB
  int32_t count;
  DeviceSegment segments[kMaxSegments];
};

// A segment's sums while its blocks are added in any order: cuda/sums.cuh.
struct SegmentSums {
  double lanes[2][kLanes];       // as the blocks so far, added in order, give them: squares, errors
  double added[2][kLanes];       // of the blocks since
  uint32_t smallest[2];          // minus the bits of their smallest square that is not zero
  uint32_t unused[2];
};

// A unit's scale and what follows from it: rounding.cuh.
struct ScaleRule {
  float global_scale;
  float by_largest[2];           // a block's amax is divided by: so that it becomes 6, and 4
  float by_largest_inverse[2];
  float inverse_scale;           // of the global one
  float halves[8];               // half an inverse is multiplied by, by the scale's mantissa; 0: not to be done
  bool all_halves;               // none of which is 0
  bool ordinary;                 // whether the shortcuts hold for the global scale
  bool modelopt;
  bool zero;                     // a unit of zeros
};

constexpr int kSlots = 2048;     // thread blocks of an amax at most

// All zeros at first, but for slots.
struct Workspace {
  uint32_t largest;              // magnitude, as an element's bits; a scale byte of MXFP4
  uint32_t finished;             // thread blocks of a launch that concludes
  unsigned long long requantized;
  uint32_t slots[kSlots];        // the largest of each thread block of an amax, of a unit or on its own
  SegmentSums sums[1];           // one a segment
};

// An encode of a batch.
struct Encode {
  Source source;
  sparkfp4_recipe recipe;
  sparkfp4_search search;
  const float *importance;
  bool of_unit;                  // its scale follows from Workspace::slots
  bool backwards;                // last tile first: what an earlier pass left in the cache
  float global_scale;
  ScaleRule rule;                // of a known scale
  unsigned char *packed;
  unsigned char *scales;
  bool with_sums;
  sparkfp4_cuda_outcome *outcome;  // without sums: its last thread block writes that
  Workspace *workspace;
};

// What an amax begins with: the workspace, and results, of a unit of which it sees the first batch.
struct Beginning {
  bool first;
  int64_t segments;
  sparkfp4_error_sums *sums;     // or null
  sparkfp4_cuda_outcome *outcome;
};

constexpr uint32_t kStripRows = 16;

// Whether the encode's tiles are of strips, a warp's each: kStripRows rows of 32 blocks, eight of which share a scale,
// as the rows do. Blocks of one column then are of one lane of the sums.
inline bool takes_strips(const Encode &encode) {
  const Source &source = encode.source;
  return source.kind == kCodeSources + SPARKFP4_E4M3 && encode.search == SPARKFP4_RTN &&
         source.row_blocks.divisor != 0 && source.row_blocks.divisor % kLanes == 0 &&
         source.per_scale.divisor % 8 == 0 && source.block_rows.divisor % kStripRows == 0;
}

// Whether the encode's tiles are of source blocks, a thread's each: MXFP4's of 32, which become two.
inline bool takes_source_blocks(const Encode &encode) {
  const Source &source = encode.source;
  return source.kind == kCodeSources + SPARKFP4_E2M1 && source.scale_type == SPARKFP4_SCALE_E8M0 &&
         encode.search == SPARKFP4_RTN && source.row_blocks.divisor != 0 && source.row_blocks.divisor % 2 == 0 &&
         source.per_scale.divisor == 2 && source.block_rows.divisor == 1;
}

// A cast of a batch, whose blocks and elements are those of the source.
struct Cast {
  sparkfp4_recipe recipe;
  int32_t kmax;
  float global_scale;
  unsigned char *packed;
  unsigned char *scales;
  bool with_sums;
  Workspace *workspace;
};

// What is left to do once the kernels of a call have run.
struct Conclusion {
  enum Kind { kAmax, kEncode, kCast, kExponent, kDequantize };
  Kind kind;
  Encode encode;                 // its source, workspace and, with sums, outputs and scales
  int32_t kmax;
  int64_t row_elements;          // of kDequantize
  bool in_order;                 // nothing has been added to the sums yet
  sparkfp4_error_sums *sums;     // or null
  sparkfp4_cuda_outcome *outcome;
};

struct Dequantize {
  Source source;
  const unsigned char *codes;
  const unsigned char *scales;
  int64_t rows;
  int64_t cols;
  int64_t row_bytes;
  int64_t run;                   // columns that share a scale
  int64_t row_scales;
  int64_t block_rows;            // 0: all
  unsigned char *out;
  Workspace *workspace;
};

// Each enqueues one launch, or a few of one kind.
cudaError_t launch_begin(Workspace *workspace, int64_t segments, sparkfp4_error_sums *sums,
                         sparkfp4_cuda_outcome *outcome, cudaStream_t stream);
// Its results are in Workspace::slots.
cudaError_t launch_amax(const Batch &batch, const Encode &encode, const Beginning &beginning, cudaStream_t stream);
cudaError_t launch_encode(const Batch &batch, const Encode &encode, cudaStream_t stream);
cudaError_t launch_search(const Batch &batch, const Encode &encode, cudaStream_t stream);
cudaError_t launch_hessian(const Batch &batch, const Encode &encode, cudaStream_t stream);
cudaError_t launch_cast(const Batch &batch, const Cast &cast, cudaStream_t stream);
cudaError_t launch_exponent(const Batch &batch, Workspace *workspace, cudaStream_t stream);
cudaError_t launch_dequantize(const Dequantize &dequantize, cudaStream_t stream);
cudaError_t launch_conclude(const Batch &batch, const Conclusion &conclusion, cudaStream_t stream);

}  // namespace sparkfp4::cuda
