/*
 * The C interface of the layout kernels for NVIDIA GPUs, in libsparkfp4-cuda.so: what sparkfp4_layouts.h defines, with
 * its bytes. The two faces are those of sparkfp4_cuda.h.
 */
#ifndef SPARKFP4_CUDA_LAYOUTS_H
#define SPARKFP4_CUDA_LAYOUTS_H

#include "sparkfp4_cuda.h"
#include "sparkfp4_layouts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Host memory: as their namesakes of sparkfp4_layouts.h. A unit goes to the device whole. ---- */

SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_arrange_codes(sparkfp4_cuda_context *context,
                                                              sparkfp4_code_layout layout,
                                                              const sparkfp4_arrangement *shape,
                                                              const void *const *members, void *out);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_restore_codes(sparkfp4_cuda_context *context,
                                                              sparkfp4_code_layout layout,
                                                              const sparkfp4_arrangement *shape, const void *arranged,
                                                              void *const *members);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_arrange_scales(sparkfp4_cuda_context *context,
                                                               sparkfp4_scale_layout layout,
                                                               const sparkfp4_arrangement *shape,
                                                               const void *const *members, float factor, void *out);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_restore_scales(sparkfp4_cuda_context *context,
                                                               sparkfp4_scale_layout layout,
                                                               const sparkfp4_arrangement *shape, const void *arranged,
                                                               float factor, void *const *members);
/* An expert at a time. */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_decode_tensor(sparkfp4_cuda_context *context,
                                                              const sparkfp4_tensor *tensor, sparkfp4_dtype dtype,
                                                              void *out);

/*
 * ---- Device memory: the same, enqueued. ----
 *
 * Members, matrices and a tensor's data are device memory; the arrays of members and the structs are host memory and
 * may be reused once a call returns. Any alignment serves, and 16 is fastest; but a tensor's codes are aligned to 16,
 * its scales, global scales and what it is decoded to to 4.
 */
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_arrange_codes(sparkfp4_code_layout layout,
                                                                      const sparkfp4_arrangement *shape,
                                                                      const void *const *members, void *out,
                                                                      sparkfp4_cuda_stream stream);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_restore_codes(sparkfp4_code_layout layout,
                                                                      const sparkfp4_arrangement *shape,
                                                                      const void *arranged, void *const *members,
                                                                      sparkfp4_cuda_stream stream);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_arrange_scales(sparkfp4_scale_layout layout,
                                                                       const sparkfp4_arrangement *shape,
                                                                       const void *const *members, float factor,
                                                                       void *out, sparkfp4_cuda_stream stream);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_restore_scales(sparkfp4_scale_layout layout,
                                                                       const sparkfp4_arrangement *shape,
                                                                       const void *arranged, float factor,
                                                                       void *const *members,
                                                                       sparkfp4_cuda_stream stream);
SPARKFP4_API sparkfp4_cuda_status sparkfp4_cuda_enqueue_decode_tensor(const sparkfp4_tensor *tensor,
                                                                      sparkfp4_dtype dtype, void *out,
                                                                      sparkfp4_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
