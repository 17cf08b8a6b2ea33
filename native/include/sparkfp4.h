/*
 * The C interface of the Spark FP4 kernels.
 *
 * NVFP4: 16 consecutive elements of a row share one E4M3FN scale, an element is one E2M1 code, all members of a unit
 * share one binary32 global scale. A segment [rows, cols] becomes packed [rows, cols / 2] (byte j of a row holds
 * element 2j in its low half, 2j + 1 in its high half) and scales [rows, cols / 16], row-major, without padding.
 *
 * Every tier gives the same bytes and the same error sums, bit for bit. Memory may lie at any address; sizes and
 * indices are 64-bit. Nothing is kept between calls: all functions may be called from any number of threads. Nothing
 * throws. The rounding mode must be to nearest and subnormals must not be flushed, which is how a thread starts.
 */
#ifndef SPARKFP4_H
#define SPARKFP4_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPARKFP4_API __attribute__((visibility("default")))

/* What a call came to. */
typedef enum sparkfp4_status {
  SPARKFP4_OK = 0,
  /* An argument is out of its range; nothing was read or written. */
  SPARKFP4_INVALID = 1,
  /* A source element is NaN or infinite; a sparkfp4_position says which. What was written is not to be used. */
  SPARKFP4_NON_FINITE = 2,
  /* The library or the processor lacks the tier. */
  SPARKFP4_NO_TIER = 3
} sparkfp4_status;

/* Instruction sets, slowest first. */
typedef enum sparkfp4_tier { SPARKFP4_SCALAR = 0, SPARKFP4_AVX2 = 1, SPARKFP4_AVX512 = 2 } sparkfp4_tier;

/* Little-endian source elements. */
typedef enum sparkfp4_dtype { SPARKFP4_BF16 = 0, SPARKFP4_F16 = 1, SPARKFP4_F32 = 2 } sparkfp4_dtype;

/* Whose arithmetic gives the scales. */
typedef enum sparkfp4_recipe { SPARKFP4_MODELOPT = 0, SPARKFP4_COMPRESSED_TENSORS = 1 } sparkfp4_recipe;

/* Consecutive rows of one tensor; count is in elements for sparkfp4_amax and in rows for sparkfp4_encode. */
typedef struct sparkfp4_segment {
  const void *data;
  int64_t count;
} sparkfp4_segment;

/* The first element that is not finite, in the order of the segments and then of the index. */
typedef struct sparkfp4_position {
  int64_t segment;
  int64_t index;
  float value;
} sparkfp4_position;

/* The squares of one segment: of w, and of w - e2m1(code) * d. */
typedef struct sparkfp4_error_sums {
  double squares;
  double squared_errors;
} sparkfp4_error_sums;

/* The version of the sources that the library was built from, as the jar that loads it must have it. */
SPARKFP4_API const char *sparkfp4_version(void);

/* The fastest tier that this library and this processor have. */
SPARKFP4_API sparkfp4_tier sparkfp4_best_tier(void);

/* Whether a tier can be used here: 1 or 0. */
SPARKFP4_API int sparkfp4_has_tier(sparkfp4_tier tier);

/*
 * The largest |w| of all segments; 0 where there are no elements.
 *
 * amax: where it goes; written with SPARKFP4_OK only.
 * non_finite: written with SPARKFP4_NON_FINITE only.
 */
SPARKFP4_API sparkfp4_status sparkfp4_amax(sparkfp4_tier tier, sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                                           int64_t segment_count, float *amax, sparkfp4_position *non_finite);

/*
 * Encodes segments that share a global scale and cols; packed and scales of the second follow those of the first at
 * once.
 *
 * cols: a multiple of 16.
 * global_scale: as a checkpoint stores it (amax / 2688 for MODELOPT, about 2688 / amax for COMPRESSED_TENSORS);
 *     positive and finite. Zero tensors are the caller's: their codes do not follow from a scale.
 * packed, scales: rows * cols / 2 and rows * cols / 16 bytes over all segments; must not overlap the sources.
 * sums: one a segment, or NULL to skip that work.
 * non_finite: written with SPARKFP4_NON_FINITE only.
 */
SPARKFP4_API sparkfp4_status sparkfp4_encode(sparkfp4_tier tier, sparkfp4_recipe recipe, sparkfp4_dtype dtype,
                                             const sparkfp4_segment *segments, int64_t segment_count, int64_t cols,
                                             float global_scale, void *packed, void *scales, sparkfp4_error_sums *sums,
                                             sparkfp4_position *non_finite);

/* Asks the kernel to read the pages of a mapped range ahead. A hint: does nothing where that fails. */
SPARKFP4_API void sparkfp4_prefetch(const void *address, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
