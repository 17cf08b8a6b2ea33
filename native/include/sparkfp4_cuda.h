/*
 * The C interface of the Spark FP4 kernels for NVIDIA GPUs: libsparkfp4-cuda.so.
 *
 * Formats, layouts, schemes and positions are those of sparkfp4.h, and so are the bytes and the error sums, bit for
 * bit. The library holds the CUDA runtime, loads where there is no driver, and takes compute capability 8.0 or later.
 * Sizes and indices are 64-bit. Nothing throws.
 *
 * Two faces over the same kernels:
 *   sparkfp4_cuda_NAME: host memory. Synchronous, staged through the pinned memory of a context. A context serves one
 *       thread at a time; any number of contexts share a device.
 *   sparkfp4_cuda_enqueue_NAME: device memory. Asynchronous on a stream of the current device, nothing is allocated,
 *       results stay in device memory. Arrays of segments are host memory and may be reused once the call returns;
 *       data, outputs, sums, outcome and workspace are device memory, which must stay until the stream has passed the
 *       call.
 *
 * Data is read fastest from addresses that are multiples of 16 and written fastest to multiples of 8; others are right.
 * MIG, several devices and the choice of a device are the caller's: a context belongs to the device it was created on.
 */
#ifndef SPARKFP4_CUDA_H
#define SPARKFP4_CUDA_H

#include "sparkfp4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a call came to: 0 to 3 are those of sparkfp4_status. */
typedef enum sparkfp4_cuda_status {
  SPARKFP4_CUDA_OK = 0,
  /* An argument is out of its range; nothing was read or written. */
  SPARKFP4_CUDA_INVALID = 1,
  /* A source element is NaN or infinite; a sparkfp4_position says which. What was written is not to be used. */
  SPARKFP4_CUDA_NON_FINITE = 2,
  /* No driver, no device of that number, or one below compute capability 8.0. */
  SPARKFP4_CUDA_NO_DEVICE = 16,
  /* Not even the smallest pieces found device or pinned memory. The context can be used again. */
  SPARKFP4_CUDA_OUT_OF_MEMORY = 17,
  /* An illegal access or another error after which this process can use no CUDA: it must end. */
  SPARKFP4_CUDA_STICKY = 18,
  /* Another error of CUDA, which sparkfp4_cuda_error() words. */
  SPARKFP4_CUDA_FAILED = 19
} sparkfp4_cuda_status;

/*
 * A search and the importance of a weighted one, as for sparkfp4_encode; where a function takes a choice, NULL stands
 * for RTN. importance belongs to the columns, so that all segments of a call share it; in device memory it is aligned
 * to 4. cols is below 2^31 everywhere.
 */
typedef struct sparkfp4_cuda_choice {
  sparkfp4_search search;
  const float *importance;
} sparkfp4_cuda_choice;

/* The version of the sources that the library was built from, as the jar that loads it must have it. */
SPARKFP4_API const char *sparkfp4_cuda_version(void);

/* How many devices of compute capability 8.0 or later there are; 0 without a driver. Numbers are CUDA's. */
SPARKFP4_API int sparkfp4_cuda_device_count(void);

/* What CUDA said of this thread's last call that came to 16 or above; "" before. Valid until the next such call. */
SPARKFP4_API const char *sparkfp4_cuda_error(void);

/* ---- Host memory ---- */

typedef struct sparkfp4_cuda_context sparkfp4_cuda_context;

/* The limits of a context. 0 stands for the default. */
typedef struct sparkfp4_cuda_limits {
  /* Bytes of a piece, a multiple of 1 MiB from 1 MiB on: data moves in pieces. Default 8 MiB. */
  int64_t piece_bytes;
  /* Device memory that the context may hold. Default: none but the device's. */
  int64_t device_bytes;
} sparkfp4_cuda_limits;

/*
 * Creates a context on a device: streams, events and a ring of pinned pieces. Device memory is taken when a call needs
 * it and kept for the next.
 *
 * limits: NULL for the defaults.
 * context: written with SPARKFP4_CUDA_OK only.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_create(int device, const sparkfp4_cuda_limits *limits,
                                                       sparkfp4_cuda_context **context);

/* Ends a context and frees what it holds; NULL is none. */
SPARKFP4_API void sparkfp4_cuda_destroy(sparkfp4_cuda_context *context);

/*
 * Takes pinned memory: what a host function writes to, packed or scales, from its first to its last byte, the device then
 * writes itself, and the copy out of a pinned piece is saved. Where the function comes to anything but
 * SPARKFP4_CUDA_OK, that memory may have been written. To pin takes as long as much work: keep it.
 *
 * device: one that the caller uses anyhow; contexts of all devices write to the memory.
 * memory: written with SPARKFP4_CUDA_OK only.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_pin(int device, int64_t bytes, void **memory);

/* Frees what sparkfp4_cuda_pin gave on that device; NULL is none. No call may be writing to it. */
SPARKFP4_API void sparkfp4_cuda_unpin(int device, void *memory);

/* sparkfp4_amax; a segment's count is in elements. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_amax(sparkfp4_cuda_context *context, sparkfp4_dtype dtype,
                                                     const sparkfp4_segment *segments, int64_t segment_count,
                                                     float *amax, sparkfp4_position *non_finite);

/*
 * sparkfp4_encode under a search; a segment's count is in rows.
 *
 * global_scale: as ScaleSearch.globalScale gives it for the search.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_encode(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                                       const sparkfp4_cuda_choice *choice, sparkfp4_dtype dtype,
                                                       const sparkfp4_segment *segments, int64_t segment_count,
                                                       int64_t cols, float global_scale, void *packed, void *scales,
                                                       sparkfp4_error_sums *sums, sparkfp4_position *non_finite);

/*
 * Finds the largest |w| of a whole unit, forms its global scale as ScaleSearch.globalScale does, and encodes it. Host
 * memory is read once where the unit finds room on the device, twice where it does not. A unit that Nvfp4.isZero calls
 * zero gets codes 0, zero block scales and error sums of 0.
 *
 * amax: of the unit; written with SPARKFP4_CUDA_OK only.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_encode_unit(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                                            const sparkfp4_cuda_choice *choice, sparkfp4_dtype dtype,
                                                            const sparkfp4_segment *segments, int64_t segment_count,
                                                            int64_t cols, void *packed, void *scales,
                                                            sparkfp4_error_sums *sums, float *amax,
                                                            sparkfp4_position *non_finite);

/* sparkfp4_quantized_amax. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_quantized_amax(sparkfp4_cuda_context *context,
                                                               const sparkfp4_scheme *scheme,
                                                               const sparkfp4_quantized_segment *segments,
                                                               int64_t segment_count, int64_t cols, float *amax,
                                                               sparkfp4_position *non_finite);

/* sparkfp4_quantized_encode under a search. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_quantized_encode(
    sparkfp4_cuda_context *context, sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice,
    const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols,
    float global_scale, void *packed, void *scales, sparkfp4_error_sums *sums, sparkfp4_position *non_finite);

/* sparkfp4_cuda_encode_unit of a quantized source. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_quantized_encode_unit(
    sparkfp4_cuda_context *context, sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice,
    const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols,
    void *packed, void *scales, sparkfp4_error_sums *sums, float *amax, sparkfp4_position *non_finite);

/* sparkfp4_dequantize_bf16. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_dequantize_bf16(sparkfp4_cuda_context *context,
                                                                const sparkfp4_scheme *scheme,
                                                                const sparkfp4_quantized_segment *segment,
                                                                int64_t cols, void *out, sparkfp4_position *non_finite);

/* sparkfp4_largest_exponent; a segment's count is in scales. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_largest_exponent(sparkfp4_cuda_context *context,
                                                                 const sparkfp4_segment *scales, int64_t segment_count,
                                                                 int32_t *exponent, sparkfp4_position *non_finite);

/* sparkfp4_cast_mxfp4. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_cast_mxfp4(sparkfp4_cuda_context *context, sparkfp4_recipe recipe,
                                                           const sparkfp4_quantized_segment *segments,
                                                           int64_t segment_count, int64_t cols, int32_t kmax,
                                                           void *packed, void *scales, sparkfp4_error_sums *sums,
                                                           int64_t *requantized, sparkfp4_position *non_finite);

/* ---- Device memory ---- */

/* cudaStream_t. */
typedef struct CUstream_st *sparkfp4_cuda_stream;

/* The results of an enqueued call, in device memory: 8-byte aligned, overwritten whole. */
typedef struct sparkfp4_cuda_outcome {
  /* SPARKFP4_CUDA_OK, _NON_FINITE, or _INVALID for a scale above kmax. */
  int32_t status;
  /* Of an amax or a unit. */
  float amax;
  /* That a unit was encoded with. */
  float global_scale;
  /* Of sparkfp4_cuda_enqueue_largest_exponent. */
  int32_t exponent;
  /* Of sparkfp4_cuda_enqueue_cast_mxfp4. */
  int64_t requantized;
  /* Of _NON_FINITE. */
  sparkfp4_position non_finite;
} sparkfp4_cuda_outcome;

/* Bytes of the workspace of a call with so many segments: 16-byte aligned device memory of any content. */
SPARKFP4_API int64_t sparkfp4_cuda_workspace_bytes(int64_t segment_count);

/*
 * As their namesakes above. They return SPARKFP4_CUDA_OK once the work is enqueued; outcome tells the rest. sums, where
 * not NULL, takes one sparkfp4_error_sums a segment in device memory; importance of a choice is device memory.
 * Two calls may not share outcome or workspace while both are under way.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_amax(sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                                                             int64_t segment_count, sparkfp4_cuda_outcome *outcome,
                                                             void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_encode(
    sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, sparkfp4_dtype dtype, const sparkfp4_segment *segments,
    int64_t segment_count, int64_t cols, float global_scale, void *packed, void *scales, sparkfp4_error_sums *sums,
    sparkfp4_cuda_outcome *outcome, void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_encode_unit(
    sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, sparkfp4_dtype dtype, const sparkfp4_segment *segments,
    int64_t segment_count, int64_t cols, void *packed, void *scales, sparkfp4_error_sums *sums,
    sparkfp4_cuda_outcome *outcome, void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_quantized_amax(
    const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols,
    sparkfp4_cuda_outcome *outcome, void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_quantized_encode(
    sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, const sparkfp4_scheme *scheme,
    const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols, float global_scale, void *packed,
    void *scales, sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome, void *workspace,
    sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_quantized_encode_unit(
    sparkfp4_recipe recipe, const sparkfp4_cuda_choice *choice, const sparkfp4_scheme *scheme,
    const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols, void *packed, void *scales,
    sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome, void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_dequantize_bf16(
    const sparkfp4_scheme *scheme, const sparkfp4_quantized_segment *segment, int64_t cols, void *out,
    sparkfp4_cuda_outcome *outcome, void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_largest_exponent(const sparkfp4_segment *scales,
                                                                         int64_t segment_count,
                                                                         sparkfp4_cuda_outcome *outcome,
                                                                         void *workspace, sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_cast_mxfp4(
    sparkfp4_recipe recipe, const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols,
    int32_t kmax, void *packed, void *scales, sparkfp4_error_sums *sums, sparkfp4_cuda_outcome *outcome,
    void *workspace, sparkfp4_cuda_stream stream);

/*
 * Values of a quantized tensor: what Nvfp4.decode and Mxfp4Codec.decode define, little-endian binary32, all NaN the
 * canonical one. They have no face of host memory, whose way there and back would be longer than the work.
 *
 * codes: 8 bytes a block of 16 of NVFP4, 16 a block of 32 of MXFP4. scales: a byte a block, in their order.
 * global_scale: as stored, positive and finite: it multiplies or, of compressed-tensors, divides.
 * out: 64 bytes a block of NVFP4, 128 a block of MXFP4.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_nvfp4_values(sparkfp4_recipe recipe, const void *codes,
                                                                     const void *scales, int64_t blocks,
                                                                     float global_scale, void *out,
                                                                     sparkfp4_cuda_stream stream);

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_mxfp4_values(const void *codes, const void *scales,
                                                                     int64_t blocks, void *out,
                                                                     sparkfp4_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
