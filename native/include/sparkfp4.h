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

/*
 * How the scale of a block is chosen, as org.sparkfp4.formats.ScaleSearch defines it. All but RTN search, and expect a
 * global scale of amax / 1536 (1536 / amax for COMPRESSED_TENSORS), which leaves room above the largest block's scale.
 */
typedef enum sparkfp4_search {
  /* By the block's largest |w|, which becomes 6: the producers' own rule. */
  SPARKFP4_RTN = 0,
  /* By the largest |w|, which becomes 6 or 4: the one of the smaller squared error. */
  SPARKFP4_FOUR_OVER_SIX = 1,
  /* The scale of the smallest squared error of all 126, the lowest of equal ones. */
  SPARKFP4_SWEEP = 2,
  /* The same of errors weighed by importance[cols], of which none is negative. */
  SPARKFP4_WEIGHTED = 3,
  /* The same of the quadratic form of errors and importance[cols / 16][16][16]. */
  SPARKFP4_WEIGHTED_HESSIAN = 4
} sparkfp4_search;

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

/* The codes of a quantized source: an element is a code's value times the scale of its block. */
typedef enum sparkfp4_codes {
  /* FP8 E4M3FN, a byte an element. */
  SPARKFP4_E4M3 = 0,
  /* A nibble an element, the even one low, its value plus 8; rows are whole words of 4 bytes. */
  SPARKFP4_INT4 = 1,
  /* FP4 E2M1, a nibble an element, the even one low. */
  SPARKFP4_E2M1 = 2
} sparkfp4_codes;

/* The little-endian scales of a quantized source; an E8M0 byte s is 2^(s - 127), 255 is NaN. */
typedef enum sparkfp4_scale_type {
  SPARKFP4_SCALE_F32 = 0,
  SPARKFP4_SCALE_BF16 = 1,
  SPARKFP4_SCALE_F16 = 2,
  SPARKFP4_SCALE_E8M0 = 3
} sparkfp4_scale_type;

/*
 * w[i][j] = code[i][j] * scale[i / block_rows][j / block_cols], one binary32 product. Both are row-major; blocks at the
 * edges may be partial. block_cols is a multiple of 16; 0 stands for all rows or columns.
 */
typedef struct sparkfp4_scheme {
  sparkfp4_codes codes;
  sparkfp4_scale_type scales;
  int64_t block_rows;
  int64_t block_cols;
} sparkfp4_scheme;

/* Consecutive rows of one quantized tensor, the first of which is a multiple of block_rows. */
typedef struct sparkfp4_quantized_segment {
  const void *codes;
  const void *scales;
  int64_t rows;
} sparkfp4_quantized_segment;

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
 * importance: of a weighted search, finite and of any alignment; NULL for the others.
 * cols: a multiple of 16.
 * global_scale: as a checkpoint stores it (amax / 2688 for MODELOPT, about 2688 / amax for COMPRESSED_TENSORS, of RTN);
 *     positive and finite. Zero tensors are the caller's: their codes do not follow from a scale.
 * packed, scales: rows * cols / 2 and rows * cols / 16 bytes over all segments; must not overlap the sources.
 * sums: one a segment, or NULL to skip that work.
 * non_finite: written with SPARKFP4_NON_FINITE only.
 */
SPARKFP4_API sparkfp4_status sparkfp4_encode(sparkfp4_tier tier, sparkfp4_recipe recipe, sparkfp4_search search,
                                             const float *importance, sparkfp4_dtype dtype,
                                             const sparkfp4_segment *segments, int64_t segment_count, int64_t cols,
                                             float global_scale, void *packed, void *scales, sparkfp4_error_sums *sums,
                                             sparkfp4_position *non_finite);

/* sparkfp4_amax of a quantized source; cols is a multiple of 16. */
SPARKFP4_API sparkfp4_status sparkfp4_quantized_amax(sparkfp4_tier tier, const sparkfp4_scheme *scheme,
                                                     const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                                     int64_t cols, float *amax, sparkfp4_position *non_finite);

/* sparkfp4_encode of a quantized source, whose dequantized elements are taken as binary32 ones. */
SPARKFP4_API sparkfp4_status sparkfp4_quantized_encode(sparkfp4_tier tier, sparkfp4_recipe recipe,
                                                       sparkfp4_search search, const float *importance,
                                                       const sparkfp4_scheme *scheme,
                                                       const sparkfp4_quantized_segment *segments,
                                                       int64_t segment_count, int64_t cols, float global_scale,
                                                       void *packed, void *scales, sparkfp4_error_sums *sums,
                                                       sparkfp4_position *non_finite);

/*
 * Dequantizes a segment, of any cols, to bfloat16, nearest even; SPARKFP4_NON_FINITE where an element is not finite in
 * bfloat16.
 */
SPARKFP4_API sparkfp4_status sparkfp4_dequantize_bf16(sparkfp4_tier tier, const sparkfp4_scheme *scheme,
                                                      const sparkfp4_quantized_segment *segment, int64_t cols,
                                                      void *out, sparkfp4_position *non_finite);

/*
 * The largest exponent of E8M0 scales, -127 where there are none; a segment's count is in scales.
 *
 * non_finite: of the first scale that is NaN or above 2^124, whose first element's index is 32 times its own.
 */
SPARKFP4_API sparkfp4_status sparkfp4_largest_exponent(const sparkfp4_segment *scales, int64_t segment_count,
                                                       int32_t *exponent, sparkfp4_position *non_finite);

/*
 * Casts MXFP4 (E2M1 codes, an E8M0 scale for every 32 elements of a row) to NVFP4 of the global scale 2^m, which
 * COMPRESSED_TENSORS stores as 2^-m, with m = kmax - 8. A block of scale 2^k becomes two of the same codes and the
 * scale 2^(k - m); one of k < kmax - 17 is encoded anew under this global scale; one of the scale byte 0 becomes zeros.
 *
 * cols: a multiple of 32.
 * kmax: of all tensors that share the global scale, from -118 to 124. SPARKFP4_INVALID where a scale exceeds 2^kmax.
 * requantized: how many blocks of 16 were encoded anew; written with SPARKFP4_OK only.
 * Otherwise as sparkfp4_encode; non_finite as sparkfp4_largest_exponent.
 */
SPARKFP4_API sparkfp4_status sparkfp4_cast_mxfp4(sparkfp4_tier tier, sparkfp4_recipe recipe,
                                                 const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                                 int64_t cols, int32_t kmax, void *packed, void *scales,
                                                 sparkfp4_error_sums *sums, int64_t *requantized,
                                                 sparkfp4_position *non_finite);

/* Asks the kernel to read the pages of a mapped range ahead. A hint: does nothing where that fails. */
SPARKFP4_API void sparkfp4_prefetch(const void *address, size_t bytes);

/*
 * Takes the pages of a mapping of a file, which nobody reads any more, out of the process, for munmap to find none. munmap
 * alone does it under the process's lock of its address space, for which all threads wait that map or unmap; this, since
 * Linux 6.17, under the mapping's own. To read them again is allowed and reads the file.
 *
 * address: of any alignment; its page, as the last one, must belong to the mapping wholly.
 */
SPARKFP4_API void sparkfp4_let_go(const void *address, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
