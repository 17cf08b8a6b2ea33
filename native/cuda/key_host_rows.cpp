// The C interface over host memory of keys, queries and norms whose results are rows, as their sources are.
#include "key_norm.h"

namespace sparkfp4::cuda {
namespace {

// Blocks of 32.
struct Quantize {
  sparkfp4_cuda_context *context;
  sparkfp4_scale_rule rule;
  sparkfp4_dtype dtype;
  const void *data;
  int64_t row_blocks;
  void *packed;
  void *scales;

  int64_t bad_row(int64_t first, int64_t found) const { return (first + found) / row_blocks; }
  int64_t row_bytes() const { return source_bytes() + kKeyPackedBlock + 1; }
  int64_t fixed_bytes() const { return 0; }
  int64_t result_bytes() const { return 0; }
  int64_t source_bytes() const { return kKeyBlock * bytes(dtype); }
  cudaError_t begin(Arena *) { return cudaSuccess; }

  sparkfp4_cuda_status run(int64_t first, int64_t count, Arena arena, unsigned char *, sparkfp4_cuda_bad_rows *bad) {
    Staging &staging = context->staging;
    unsigned char *source = arena.take<unsigned char>(count * source_bytes());
    unsigned char *codes = arena.take<unsigned char>(count * kKeyPackedBlock);
    unsigned char *of_scales = arena.take<unsigned char>(count);
    cudaError_t error = staging.upload(source, row_at(data, first, source_bytes()), count * source_bytes());
    if (error == cudaSuccess) {
      sparkfp4_cuda_status status = sparkfp4_cuda_enqueue_mxfp4_quantize(rule, dtype, source, count, kKeyBlock, codes,
                                                                         of_scales, bad, staging.stream());
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      error = staging.download(row_at(packed, first, kKeyPackedBlock), codes, count * kKeyPackedBlock);
    }

    if (error == cudaSuccess) {
      error = staging.download(row_at(scales, first, 1), of_scales, count);
    }

    return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  }
};

// Tokens of queries.
struct Query {
  static constexpr int64_t kPackedHead = kQueryDim / 2;
  static constexpr int64_t kScalesHead = kQueryDim / kKeyBlock;

  sparkfp4_cuda_context *context;
  sparkfp4_scale_rule rule;
  sparkfp4_dtype dtype;
  const void *query;
  sparkfp4_dtype weights_dtype;
  const void *weights;
  float weight_scale;
  int64_t heads;
  int64_t padded;
  void *packed;
  void *scales;
  float *weights_out;

  int64_t bad_row(int64_t first, int64_t found) const { return first * heads + found; }
  int64_t source_bytes() const { return heads * kQueryDim * bytes(dtype); }
  int64_t weight_bytes() const { return heads * bytes(weights_dtype); }
  int64_t out_weight_bytes() const { return padded * static_cast<int64_t>(sizeof(float)); }
  int64_t row_bytes() const {
    return source_bytes() + weight_bytes() + padded * (kPackedHead + kScalesHead) + out_weight_bytes();
  }
  int64_t fixed_bytes() const { return 0; }
  int64_t result_bytes() const { return 0; }
  cudaError_t begin(Arena *) { return cudaSuccess; }

  sparkfp4_cuda_status run(int64_t first, int64_t count, Arena arena, unsigned char *, sparkfp4_cuda_bad_rows *bad) {
    Staging &staging = context->staging;
    unsigned char *source = arena.take<unsigned char>(count * source_bytes());
    unsigned char *of_heads = arena.take<unsigned char>(count * weight_bytes());
    unsigned char *codes = arena.take<unsigned char>(count * padded * kPackedHead);
    unsigned char *of_scales = arena.take<unsigned char>(count * padded * kScalesHead);
    float *out = arena.take<float>(count * out_weight_bytes());
    cudaError_t error = staging.upload(source, row_at(query, first, source_bytes()), count * source_bytes());
    if (error == cudaSuccess) {
      error = staging.upload(of_heads, row_at(weights, first, weight_bytes()), count * weight_bytes());
    }

    if (error == cudaSuccess) {
      sparkfp4_cuda_status status = sparkfp4_cuda_enqueue_query_quantize(
          rule, dtype, source, weights_dtype, of_heads, weight_scale, count, heads, padded, codes, of_scales, out, bad,
          staging.stream());
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      error = staging.download(row_at(packed, first, padded * kPackedHead), codes, count * padded * kPackedHead);
    }

    if (error == cudaSuccess) {
      error = staging.download(row_at(scales, first, padded * kScalesHead), of_scales, count * padded * kScalesHead);
    }

    if (error == cudaSuccess) {
      error = staging.download(row_at(static_cast<void *>(weights_out), first, out_weight_bytes()),
                               reinterpret_cast<unsigned char *>(out), count * out_weight_bytes());
    }

    return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  }
};

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_mxfp4_quantize(sparkfp4_cuda_context *context, sparkfp4_scale_rule rule,
                                                  sparkfp4_dtype dtype, const void *data, int64_t rows, int64_t cols,
                                                  void *packed, void *scales, int64_t *bad_row) {
  if (context == nullptr || !valid(rule) || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_quantize(rows, cols, data, packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  int64_t row_blocks = cols / kKeyBlock;
  Quantize quantize = {context, rule, dtype, data, row_blocks, packed, scales};
  return run_rows(context, quantize, rows * row_blocks, bad_row);
}

sparkfp4_cuda_status sparkfp4_cuda_query_quantize(sparkfp4_cuda_context *context, sparkfp4_scale_rule rule,
                                                  sparkfp4_dtype dtype, const void *query,
                                                  sparkfp4_dtype weights_dtype, const void *weights,
                                                  float weight_scale, int64_t tokens, int64_t heads,
                                                  int64_t padded_heads, void *packed, void *scales,
                                                  float *weights_out, int64_t *bad_row) {
  if (context == nullptr || !valid(rule) || !sparkfp4::valid(dtype) || !sparkfp4::valid(weights_dtype) ||
      bad_row == nullptr ||
      !valid_query(tokens, heads, padded_heads, query, weights, packed, scales, weights_out)) {
    return SPARKFP4_CUDA_INVALID;
  }

  if (padded_heads == 0) {
    return SPARKFP4_CUDA_OK;
  }

  Query all = {context, rule,         dtype,  query,  weights_dtype, weights, weight_scale,
               heads,   padded_heads, packed, scales, weights_out};
  return run_rows(context, all, tokens, bad_row);
}

sparkfp4_cuda_status sparkfp4_cuda_rms_norm(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, const void *data,
                                            int64_t rows, int64_t cols, const float *weight, float eps, void *out,
                                            int64_t *bad_row) {
  if (context == nullptr || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_norm(rows, cols, data, weight, eps, out)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Norm norm = {context, dtype, data, cols, weight, eps, out};
  return run_rows(context, norm, rows, bad_row);
}
