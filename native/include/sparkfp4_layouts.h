/*
 * The C interface of the kernels that move quantized NVFP4 tensors between layouts, byte by byte as
 * org.sparkfp4.formats.CodeLayout, BlockScaleLayout and NVFP4Tensor define them. As sparkfp4.h has it: any alignment,
 * 64-bit sizes, no state, nothing throws. Sources and results must not overlap.
 *
 * All tiers give the same bytes. A result of a MiB or more is written past the caches where its lines are whole: where it,
 * or each member that it goes to, begins at a multiple of 64 and has rows (of a member) or tiles (of an arranged matrix)
 * of multiples of 64 bytes. Others are right, and slower.
 */
#ifndef SPARKFP4_LAYOUTS_H
#define SPARKFP4_LAYOUTS_H

#include "sparkfp4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where rows of members go in the arranged matrix. */
typedef enum sparkfp4_row_order {
  /* One member as it is. */
  SPARKFP4_PLAIN = 0,
  /* One member after another. */
  SPARKFP4_CONCATENATED = 1,
  /* 64 rows of each member in turn. */
  SPARKFP4_INTERLEAVED_64 = 2,
  /* A row of each member in turn; then row r of every 32 goes to r % 4 * 8 + r / 4. */
  SPARKFP4_TRTLLM_GEN_32 = 3,
  /* A row of each member in turn; then row r of every 16 goes to r % 2 * 8 + r / 2. */
  SPARKFP4_TRTLLM_GEN_16 = 4
} sparkfp4_row_order;

/* The codes of a matrix. */
typedef enum sparkfp4_code_layout {
  SPARKFP4_CODES_ROW_MAJOR = 0,
  /* [rows / 128, k / 64, 128, 32] bytes, the halves of 32 exchanged in rows 4 to 7 of every 8. */
  SPARKFP4_CODES_BLACKWELL_MOE_N128_K64 = 1,
  /* The same without the exchange. */
  SPARKFP4_CODES_BLACKWELL_N128_K64 = 2,
  /* [k / 16, 2 rows] words, Marlin's tiles. */
  SPARKFP4_CODES_MARLIN = 3
} sparkfp4_code_layout;

/* The block scales of a matrix. */
typedef enum sparkfp4_scale_layout {
  SPARKFP4_SCALES_ROW_MAJOR = 0,
  /* [ceil(rows / 128), ceil(columns / 4), 32, 4, 4] */
  SPARKFP4_SCALES_ATOM_128X4 = 1,
  /* [ceil(rows / 8), ceil(columns / 4), 8, 4] */
  SPARKFP4_SCALES_ATOM_8X4 = 2,
  /* [ceil(rows / 128), columns / 4, 128, 4] */
  SPARKFP4_SCALES_BLACKWELL_N128_K64 = 3,
  /* [columns, rows], rows permuted in blocks of 64. */
  SPARKFP4_SCALES_MARLIN_E4M3 = 4,
  /* The same in the bytes of org.sparkfp4.formats.MarlinScale. */
  SPARKFP4_SCALES_MARLIN_S0E5M3 = 5
} sparkfp4_scale_layout;

#define SPARKFP4_MAX_MEMBERS 8

/*
 * Members [rows, k] become one matrix [members * padded_rows, padded_k]; what they have not is zeros. k and padded_k
 * are multiples of 16; padded_rows is one of 64, 32 or 16 where the order has such blocks. A layout may pad rows
 * further, to its tiles; padded_k must be whole tiles (64 for BLACKWELL), but for the columns of scales in atoms.
 */
typedef struct sparkfp4_arrangement {
  sparkfp4_row_order order;
  int64_t members;
  int64_t rows;
  int64_t padded_rows;
  int64_t k;
  int64_t padded_k;
} sparkfp4_arrangement;

/* Bytes of an arranged matrix; -1 where the layout does not take the shape. */
SPARKFP4_API int64_t sparkfp4_arranged_code_bytes(sparkfp4_code_layout layout, const sparkfp4_arrangement *shape);
SPARKFP4_API int64_t sparkfp4_arranged_scale_bytes(sparkfp4_scale_layout layout, const sparkfp4_arrangement *shape);

/* members: as many as the shape's, each row-major [rows, k / 2]. */
SPARKFP4_API sparkfp4_status sparkfp4_arrange_codes(sparkfp4_tier tier, sparkfp4_code_layout layout,
                                                    const sparkfp4_arrangement *shape, const void *const *members,
                                                    void *out);
SPARKFP4_API sparkfp4_status sparkfp4_restore_codes(sparkfp4_tier tier, sparkfp4_code_layout layout,
                                                    const sparkfp4_arrangement *shape, const void *arranged,
                                                    void *const *members);

/*
 * members: as many as the shape's, each row-major [rows, k / 16], E4M3.
 * factor: of MARLIN_S0E5M3, a power of two from 1 to 2^17; 1 for the others.
 */
SPARKFP4_API sparkfp4_status sparkfp4_arrange_scales(sparkfp4_tier tier, sparkfp4_scale_layout layout,
                                                     const sparkfp4_arrangement *shape, const void *const *members,
                                                     float factor, void *out);
SPARKFP4_API sparkfp4_status sparkfp4_restore_scales(sparkfp4_tier tier, sparkfp4_scale_layout layout,
                                                     const sparkfp4_arrangement *shape, const void *arranged,
                                                     float factor, void *const *members);

/*
 * The first byte above a limit of 0 to 254, or -1: with 0x7e the first E4M3 scale that is negative or NaN.
 *
 * index: written with SPARKFP4_OK only.
 */
SPARKFP4_API sparkfp4_status sparkfp4_first_above(const void *bytes, int64_t count, int32_t limit, int64_t *index);

/*
 * A tensor to decode, of k a multiple of 64: weights [experts, rows, k / 2] with scales in atoms of 128 by 4, an
 * expert's after another's, or activations [rows, k / 2] with words of scales {s0, s2, s1, s3} one after another, of
 * one expert.
 */
typedef struct sparkfp4_tensor {
  int is_activation;
  int64_t experts;
  int64_t rows;
  int64_t k;
  const void *codes;
  const void *scales;
  /* One an expert, aligned to 4, or NULL for 1. */
  const float *global_scale;
} sparkfp4_tensor;

/*
 * e2m1(code) * (e4m3(scale) * global), two binary32 products; NaN is 0x7fc00000.
 *
 * dtype: SPARKFP4_F32, or SPARKFP4_BF16, to which that is rounded to nearest even.
 * out: [experts, rows, k].
 */
SPARKFP4_API sparkfp4_status sparkfp4_decode_tensor(sparkfp4_tier tier, const sparkfp4_tensor *tensor,
                                                    sparkfp4_dtype dtype, void *out);

#ifdef __cplusplus
}
#endif

#endif
