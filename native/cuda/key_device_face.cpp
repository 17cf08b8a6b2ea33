// The C interface of keys over device memory: checks arguments and enqueues.
#include <cmath>

#include "../src/key_arguments.h"
#include "enqueue.h"
#include "keys.h"

namespace sparkfp4::cuda {
namespace {

const unsigned char *source(const void *data) { return static_cast<const unsigned char *>(data); }
unsigned char *target(void *data) { return static_cast<unsigned char *>(data); }

// Sets bad, then launches.
template <typename Launch>
sparkfp4_cuda_status enqueue(sparkfp4_cuda_bad_rows *bad, cudaStream_t stream, const Launch &launch) {
  cudaError_t error = cudaMemsetAsync(bad, 0xff, sizeof *bad, stream);
  if (error == cudaSuccess) {
    error = launch();
  }

  return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
}

KeyRows plain_rows(sparkfp4_scale_rule rule, sparkfp4_dtype dtype, const void *data, int64_t blocks, void *packed,
                   void *scales, sparkfp4_cuda_bad_rows *bad) {
  KeyRows rows = {};
  rows.form = {kQueryDim, nullptr, nullptr, 0, 0, 0, rule};
  rows.dtype = dtype;
  rows.source = source(data);
  rows.rows = (blocks + kQueryDim / kKeyBlock - 1) / (kQueryDim / kKeyBlock);
  rows.blocks = blocks;
  rows.packed = target(packed);
  rows.scales = target(scales);
  rows.bad = bad;
  return rows;
}

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_enqueue_mxfp4_quantize(sparkfp4_scale_rule rule, sparkfp4_dtype dtype,
                                                          const void *data, int64_t rows, int64_t cols, void *packed,
                                                          void *scales, sparkfp4_cuda_bad_rows *bad,
                                                          sparkfp4_cuda_stream stream) {
  if (!valid(rule) || !sparkfp4::valid(dtype) || bad == nullptr || !valid_quantize(rows, cols, data, packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  int64_t row_blocks = cols / kKeyBlock;
  KeyRows all = plain_rows(rule, dtype, data, rows * row_blocks, packed, scales, bad);
  return enqueue(bad, stream, [&] { return launch_blocks(all, row_blocks, stream); });
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_key_insert(const sparkfp4_key_form *form, sparkfp4_dtype dtype,
                                                      const void *keys, int64_t tokens, const int64_t *slots,
                                                      const sparkfp4_pages *pages, sparkfp4_cuda_bad_rows *bad,
                                                      sparkfp4_cuda_stream stream) {
  if (!sparkfp4::valid(dtype) || bad == nullptr || !valid_insert(form, keys, tokens, slots, pages)) {
    return SPARKFP4_CUDA_INVALID;
  }

  KeyRows rows = plain_rows(form->rule, dtype, keys, tokens * (form->dim / kKeyBlock), nullptr, nullptr, bad);
  rows.form = *form;
  rows.rotation = static_cast<float>(1.0 / std::sqrt(static_cast<double>(form->dim)));
  rows.rows = tokens;
  rows.slots = slots;
  rows.pages = device_pages(*pages);
  return enqueue(bad, stream, [&] { return launch_keys(rows, stream); });
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_query_quantize(
    sparkfp4_scale_rule rule, sparkfp4_dtype dtype, const void *query, sparkfp4_dtype weights_dtype,
    const void *weights, float weight_scale, int64_t tokens, int64_t heads, int64_t padded_heads, void *packed,
    void *scales, float *weights_out, sparkfp4_cuda_bad_rows *bad, sparkfp4_cuda_stream stream) {
  if (!valid(rule) || !sparkfp4::valid(dtype) || !sparkfp4::valid(weights_dtype) || bad == nullptr ||
      !valid_query(tokens, heads, padded_heads, query, weights, packed, scales, weights_out)) {
    return SPARKFP4_CUDA_INVALID;
  }

  KeyRows rows = plain_rows(rule, dtype, query, tokens * heads * (kQueryDim / kKeyBlock), packed, scales, bad);
  rows.rows = tokens * padded_heads;
  QueryHeads of_query = {heads,       divisor(padded_heads), weights_dtype, source(weights), weight_scale,
                         target(weights_out)};
  return enqueue(bad, stream, [&] { return launch_queries(rows, of_query, stream); });
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_rms_norm(sparkfp4_dtype dtype, const void *data, int64_t rows, int64_t cols,
                                                    const float *weight, float eps, void *out,
                                                    sparkfp4_cuda_bad_rows *bad, sparkfp4_cuda_stream stream) {
  if (!sparkfp4::valid(dtype) || bad == nullptr || !valid_norm(rows, cols, data, weight, eps, out)) {
    return SPARKFP4_CUDA_INVALID;
  }

  NormRows norm = {dtype, source(data), rows, cols, weight, eps, target(out), bad};
  return enqueue(bad, stream, [&] { return launch_norm(norm, stream); });
}

sparkfp4_cuda_status sparkfp4_cuda_enqueue_latent_insert(sparkfp4_dtype dtype, const void *latent, const void *rope,
                                                         int64_t tokens, const float *weight, float eps,
                                                         int round_to_bf16, void *latent_out, const int64_t *slots,
                                                         int64_t slot_count, const sparkfp4_pages *pages,
                                                         sparkfp4_cuda_bad_rows *bad, sparkfp4_cuda_stream stream) {
  if (!sparkfp4::valid(dtype) || bad == nullptr || !valid_norm(tokens, kLatent, latent, weight, eps, latent_out) ||
      !valid_entries(rope, tokens, slots, slot_count, pages)) {
    return SPARKFP4_CUDA_INVALID;
  }

  LatentRows rows = {{dtype, source(latent), tokens, kLatent, weight, eps, target(latent_out), bad},
                     source(rope),
                     slot_count,
                     round_to_bf16 != 0,
                     slots,
                     device_pages(*pages)};
  return enqueue(bad, stream, [&] { return launch_latents(rows, stream); });
}
