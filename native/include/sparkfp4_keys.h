/*
 * The C interface of the MXFP4 kernels: indexer keys, queries, and what goes with them into a cache.
 *
 * MXFP4: 32 consecutive elements of a row share a scale byte u, which means 2^(u - 127); an element is one E2M1 code of
 * x * 2^(127 - u), nearest even, saturating, the sign of zero kept; byte j of a row's codes holds element 2j in its low
 * half, 2j + 1 in its high half.
 *
 * All arithmetic is binary32 with one rounding an operation. The sum of a row is that of sixteen lanes: lane l has the
 * elements 32 v + 2 l and 32 v + 2 l + 1 for v = 0, 1, ...; each pair is added, the pairs of a lane in the order of v,
 * the lanes by a tree: l with l + 8, then l + 4, l + 2, l + 1.
 *
 * Every tier gives the same bytes. Memory may lie at any address. All functions may be called from any number of
 * threads; nothing throws. bad_row is written with SPARKFP4_NON_FINITE only: the first row that has a NaN or an
 * infinity, in the source or once it is normalised; what was written is then not to be used.
 */
#ifndef SPARKFP4_KEYS_H
#define SPARKFP4_KEYS_H

#include "sparkfp4.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * How a block's scale follows from its largest magnitude a = m * 2^k, 1 <= m < 2.
 *
 * CEIL: u - 127 is k - 2 where m <= 1.5, else k - 1; a is taken as 6 * 2^-126 at least.
 * FLOOR: k - 2. EVEN: k - 2, from m = 1.75 on k - 1. Both not below -127.
 * BEST_OF_TWO: k - 2, not below -126, or one above where that has the smaller squared error: with y the magnitudes in
 * units of the smaller scale, e = y - q(y) and e' = y - 2 q(y / 2), the squares summed in lanes.
 */
typedef enum sparkfp4_scale_rule {
  SPARKFP4_CEIL = 0,
  SPARKFP4_FLOOR = 1,
  SPARKFP4_EVEN = 2,
  SPARKFP4_BEST_OF_TWO = 3
} sparkfp4_scale_rule;

/* What is done to a key before its codes are chosen. */
typedef struct sparkfp4_key_form {
  /* Values of a key: a multiple of 32 up to 1024. */
  int64_t dim;
  /*
   * [dim] each, or both NULL for keys that are normalised already. mean = sum(x) / dim, d = x - mean, var = sum(d * d)
   * / dim, r = 1 / sqrt(var + eps), y = (d * r) * weight + bias.
   */
  const float *norm_weight;
  const float *norm_bias;
  float eps;
  /* Whether the norm's result, and the rotation's, is rounded to bfloat16. */
  int round_to_bf16;
  /*
   * Whether the key is rotated; dim is then a power of two. For h = 1, 2, 4, ... dim / 2 the pairs (x[i], x[i + h])
   * become their sum and difference, then all are multiplied by dim^-1/2 rounded to binary32.
   */
  int hadamard;
  sparkfp4_scale_rule rule;
} sparkfp4_key_form;

/* A paged cache: slot s is token s % tokens of page s / tokens; pages begin stride bytes apart. */
typedef struct sparkfp4_pages {
  void *data;
  int64_t count;
  int64_t tokens;
  int64_t stride;
} sparkfp4_pages;

/* Encodes [rows, cols] to packed [rows, cols / 2] and scales [rows, cols / 32]; cols is a multiple of 32. */
SPARKFP4_API sparkfp4_status sparkfp4_mxfp4_quantize(sparkfp4_tier tier, sparkfp4_scale_rule rule,
                                                     sparkfp4_dtype dtype, const void *data, int64_t rows,
                                                     int64_t cols, void *packed, void *scales, int64_t *bad_row);

/*
 * Inserts keys [tokens, dim] into pages, each of which has tokens * dim / 2 bytes of codes, then tokens * dim / 32
 * scales.
 *
 * slots: one a token; negative: the token is not inserted, nor looked at. No two tokens may have one slot.
 *     SPARKFP4_INVALID where a slot is outside the cache, and then nothing is written.
 */
SPARKFP4_API sparkfp4_status sparkfp4_key_insert(sparkfp4_tier tier, const sparkfp4_key_form *form,
                                                 sparkfp4_dtype dtype, const void *keys, int64_t tokens,
                                                 const int64_t *slots, const sparkfp4_pages *pages, int64_t *bad_row);

/*
 * Encodes queries [tokens, heads, 128] to packed [tokens, padded_heads, 64] and scales [tokens, padded_heads, 4];
 * weights_out [tokens, padded_heads] are the weights [tokens, heads] times weight_scale, binary32. Heads from heads on
 * are zero. bad_row counts heads of the source; weights are not looked at.
 */
SPARKFP4_API sparkfp4_status sparkfp4_query_quantize(sparkfp4_tier tier, sparkfp4_scale_rule rule,
                                                     sparkfp4_dtype dtype, const void *query,
                                                     sparkfp4_dtype weights_dtype, const void *weights,
                                                     float weight_scale, int64_t tokens, int64_t heads,
                                                     int64_t padded_heads, void *packed, void *scales,
                                                     float *weights_out, int64_t *bad_row);

/*
 * RMSNorm of [rows, cols] to the same type, nearest even: r = 1 / sqrt(sum(x * x) / cols + eps), y = (x * r) * weight.
 * cols is a multiple of 32. A result that is not finite once it is stored makes its row a bad one.
 */
SPARKFP4_API sparkfp4_status sparkfp4_rms_norm(sparkfp4_tier tier, sparkfp4_dtype dtype, const void *data,
                                               int64_t rows, int64_t cols, const float *weight, float eps, void *out,
                                               int64_t *bad_row);

/*
 * RMSNorm of latents [tokens, 512] to latent_out, as sparkfp4_rms_norm, then an entry of 656 bytes for each of the first
 * slot_count tokens that has a slot: 512 E4M3 codes of y / s, four binary32 scales s = max(amax / 448, 2^-126) of tiles
 * of 128, and the rotary part [tokens, 64] as bfloat16. y is the normalised latent in binary32, rounded to bfloat16
 * where asked for.
 */
SPARKFP4_API sparkfp4_status sparkfp4_latent_insert(sparkfp4_tier tier, sparkfp4_dtype dtype, const void *latent,
                                                    const void *rope, int64_t tokens, const float *weight, float eps,
                                                    int round_to_bf16, void *latent_out, const int64_t *slots,
                                                    int64_t slot_count, const sparkfp4_pages *pages,
                                                    int64_t *bad_row);

#ifdef __cplusplus
}
#endif

#endif
