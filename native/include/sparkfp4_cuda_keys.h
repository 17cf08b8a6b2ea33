/*
 * The C interface of the MXFP4 kernels for NVIDIA GPUs, in libsparkfp4-cuda.so: what sparkfp4_keys.h defines, in its
 * order of sums and with its bytes. The two faces are those of sparkfp4_cuda.h.
 */
#ifndef SPARKFP4_CUDA_KEYS_H
#define SPARKFP4_CUDA_KEYS_H

#include "sparkfp4_cuda.h"
#include "sparkfp4_keys.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Host memory: as their namesakes of sparkfp4_keys.h. Of pages only the tokens' own bytes are touched. ---- */

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_mxfp4_quantize(sparkfp4_cuda_context *context,
                                                               sparkfp4_scale_rule rule, sparkfp4_dtype dtype,
                                                               const void *data, int64_t rows, int64_t cols,
                                                               void *packed, void *scales, int64_t *bad_row);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_key_insert(sparkfp4_cuda_context *context,
                                                           const sparkfp4_key_form *form, sparkfp4_dtype dtype,
                                                           const void *keys, int64_t tokens, const int64_t *slots,
                                                           const sparkfp4_pages *pages, int64_t *bad_row);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_query_quantize(
    sparkfp4_cuda_context *context, sparkfp4_scale_rule rule, sparkfp4_dtype dtype, const void *query,
    sparkfp4_dtype weights_dtype, const void *weights, float weight_scale, int64_t tokens, int64_t heads,
    int64_t padded_heads, void *packed, void *scales, float *weights_out, int64_t *bad_row);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_rms_norm(sparkfp4_cuda_context *context, sparkfp4_dtype dtype,
                                                         const void *data, int64_t rows, int64_t cols,
                                                         const float *weight, float eps, void *out, int64_t *bad_row);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_latent_insert(sparkfp4_cuda_context *context, sparkfp4_dtype dtype,
                                                              const void *latent, const void *rope, int64_t tokens,
                                                              const float *weight, float eps, int round_to_bf16,
                                                              void *latent_out, const int64_t *slots,
                                                              int64_t slot_count, const sparkfp4_pages *pages,
                                                              int64_t *bad_row);

/* ---- Device memory ---- */

/* What an enqueued call found, in device memory: 8-byte aligned, overwritten whole. Each is -1 where there is none. */
typedef struct sparkfp4_cuda_bad_rows {
  /* The first row whose RMSNorm, in the type that it is stored in, is not finite. */
  int64_t normalised;
  /* The first row that has no codes, for it is not finite. The other faces tell of normalised first. */
  int64_t encoded;
  /* The first token whose slot is past the pages: nothing is written for it. */
  int64_t slot;
} sparkfp4_cuda_bad_rows;

/*
 * As their namesakes of sparkfp4_keys.h. Data, weights and biases of norms, slots, pages' data, outputs and bad are
 * device memory; weights and biases are aligned to 4, slots to 8. They return SPARKFP4_CUDA_OK once the work is
 * enqueued; bad tells the rest. That no two tokens have one slot is not checked: such a slot gets bytes of either.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_mxfp4_quantize(sparkfp4_scale_rule rule, sparkfp4_dtype dtype,
                                                                       const void *data, int64_t rows, int64_t cols,
                                                                       void *packed, void *scales,
                                                                       sparkfp4_cuda_bad_rows *bad,
                                                                       sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_key_insert(const sparkfp4_key_form *form, sparkfp4_dtype dtype,
                                                                   const void *keys, int64_t tokens,
                                                                   const int64_t *slots, const sparkfp4_pages *pages,
                                                                   sparkfp4_cuda_bad_rows *bad,
                                                                   sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_query_quantize(
    sparkfp4_scale_rule rule, sparkfp4_dtype dtype, const void *query, sparkfp4_dtype weights_dtype,
    const void *weights, float weight_scale, int64_t tokens, int64_t heads, int64_t padded_heads, void *packed,
    void *scales, float *weights_out, sparkfp4_cuda_bad_rows *bad, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_rms_norm(sparkfp4_dtype dtype, const void *data, int64_t rows,
                                                                 int64_t cols, const float *weight, float eps,
                                                                 void *out, sparkfp4_cuda_bad_rows *bad,
                                                                 sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_latent_insert(
    sparkfp4_dtype dtype, const void *latent, const void *rope, int64_t tokens, const float *weight, float eps,
    int round_to_bf16, void *latent_out, const int64_t *slots, int64_t slot_count, const sparkfp4_pages *pages,
    sparkfp4_cuda_bad_rows *bad, sparkfp4_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
