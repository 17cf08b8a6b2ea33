// The C interface of the MXFP4 kernels: checks arguments, chooses the tier.
#include "key_arguments.h"

namespace sparkfp4 {
namespace {

// The kernels of keys are there where those of weights are.
const KeyKernel *key_kernel(sparkfp4_tier tier) {
  if (kernel(tier) == nullptr) {
    return nullptr;
  }

#ifdef SPARKFP4_X86
  if (tier == SPARKFP4_AVX2) {
    return &kAvx2Keys;
  }

  if (tier == SPARKFP4_AVX512) {
    return &kAvx512Keys;
  }
#endif

  return &kScalarKeys;
}

sparkfp4_status result(int64_t bad, int64_t *bad_row) {
  if (bad < 0) {
    return SPARKFP4_OK;
  }

  *bad_row = bad;
  return SPARKFP4_NON_FINITE;
}

// Blocks one after the other, in rows of four as long as there are; the first bad block or -1.
int64_t encode_blocks(const KeyKernel &kernel, sparkfp4_scale_rule rule, sparkfp4_dtype dtype,
                      const unsigned char *source, int64_t blocks, unsigned char *packed, unsigned char *scales) {
  int64_t done = 0;
  for (int64_t width = 4; width > 0; width -= 3) {
    sparkfp4_key_form form = {width * kKeyBlock, nullptr, nullptr, 0, 0, 0, rule};
    int64_t rows = (blocks - done) / width;
    KeyTask task = {&form,   source + done * kKeyBlock * bytes(dtype), rows, nullptr, nullptr,
                    packed + done * kKeyPackedBlock, scales + done};
    int64_t bad = kernel.keys[dtype](task);
    if (bad >= 0) {
      return done + bad * width;
    }

    done += rows * width;
  }

  return -1;
}

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

sparkfp4_status sparkfp4_mxfp4_quantize(sparkfp4_tier tier, sparkfp4_scale_rule rule, sparkfp4_dtype dtype,
                                        const void *data, int64_t rows, int64_t cols, void *packed, void *scales,
                                        int64_t *bad_row) {
  if (!valid(rule) || !valid(dtype) || bad_row == nullptr || !valid_quantize(rows, cols, data, packed, scales)) {
    return SPARKFP4_INVALID;
  }

  const KeyKernel *kernel = key_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  int64_t row_blocks = cols / kKeyBlock;
  const unsigned char *source = static_cast<const unsigned char *>(data);
  unsigned char *codes = static_cast<unsigned char *>(packed);
  unsigned char *bytes_out = static_cast<unsigned char *>(scales);
  int64_t bad = encode_blocks(*kernel, rule, dtype, source, rows * row_blocks, codes, bytes_out);
  if (bad >= 0) {
    // The bad one is among these four, which may be of several rows.
    int64_t end = bad + 4 < rows * row_blocks ? bad + 4 : rows * row_blocks;
    while (bad + 1 < end &&
           encode_blocks(*kernel, rule, dtype, source + bad * kKeyBlock * bytes(dtype), 1,
                         codes + bad * kKeyPackedBlock, bytes_out + bad) < 0) {
      bad++;
    }
  }

  return result(bad < 0 ? -1 : bad / row_blocks, bad_row);
}

sparkfp4_status sparkfp4_key_insert(sparkfp4_tier tier, const sparkfp4_key_form *form, sparkfp4_dtype dtype,
                                    const void *keys, int64_t tokens, const int64_t *slots,
                                    const sparkfp4_pages *pages, int64_t *bad_row) {
  if (!valid(dtype) || bad_row == nullptr || !valid_insert(form, keys, tokens, slots, pages) ||
      !below_end(slots, tokens, pages)) {
    return SPARKFP4_INVALID;
  }

  const KeyKernel *kernel = key_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  if (tokens == 0) {
    return SPARKFP4_OK;
  }

  unsigned char *data = static_cast<unsigned char *>(pages->data);
  KeyTask task = {form, static_cast<const unsigned char *>(keys), tokens, slots, pages, data, data};
  return result(kernel->keys[dtype](task), bad_row);
}

sparkfp4_status sparkfp4_query_quantize(sparkfp4_tier tier, sparkfp4_scale_rule rule, sparkfp4_dtype dtype,
                                        const void *query, sparkfp4_dtype weights_dtype, const void *weights,
                                        float weight_scale, int64_t tokens, int64_t heads, int64_t padded_heads,
                                        void *packed, void *scales, float *weights_out, int64_t *bad_row) {
  constexpr int64_t kDim = kQueryDim;
  constexpr int64_t kBlocks = kDim / kKeyBlock;
  if (!valid(rule) || !valid(dtype) || !valid(weights_dtype) || bad_row == nullptr ||
      !valid_query(tokens, heads, padded_heads, query, weights, packed, scales, weights_out)) {
    return SPARKFP4_INVALID;
  }

  const KeyKernel *kernel = key_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  const unsigned char *source = static_cast<const unsigned char *>(query);
  const unsigned char *source_weights = static_cast<const unsigned char *>(weights);
  for (int64_t token = 0; token < tokens; token++) {
    unsigned char *codes = static_cast<unsigned char *>(packed) + token * padded_heads * (kDim / 2);
    unsigned char *token_scales = static_cast<unsigned char *>(scales) + token * padded_heads * kBlocks;
    int64_t bad = encode_blocks(*kernel, rule, dtype, source + token * heads * kDim * bytes(dtype), heads * kBlocks,
                                codes, token_scales);
    if (bad >= 0) {
      return result(token * heads + bad / kBlocks, bad_row);
    }

    int64_t padding = padded_heads - heads;
    std::memset(codes + heads * (kDim / 2), 0, static_cast<size_t>(padding * (kDim / 2)));
    std::memset(token_scales + heads * kBlocks, 0, static_cast<size_t>(padding * kBlocks));
    float *out = weights_out + token * padded_heads;
    for (int64_t head = 0; head < padded_heads; head++) {
      int64_t i = token * heads + head;
      float weight = head >= heads                    ? 0.0f
                     : weights_dtype == SPARKFP4_BF16 ? widen<Bf16>(load_bits<Bf16>(source_weights, i)) * weight_scale
                     : weights_dtype == SPARKFP4_F16  ? widen<F16>(load_bits<F16>(source_weights, i)) * weight_scale
                                                      : widen<F32>(load_bits<F32>(source_weights, i)) * weight_scale;
      std::memcpy(out + head, &weight, sizeof weight);
    }
  }

  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_rms_norm(sparkfp4_tier tier, sparkfp4_dtype dtype, const void *data, int64_t rows,
                                  int64_t cols, const float *weight, float eps, void *out, int64_t *bad_row) {
  if (!valid(dtype) || bad_row == nullptr || !valid_norm(rows, cols, data, weight, eps, out)) {
    return SPARKFP4_INVALID;
  }

  const KeyKernel *kernel = key_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  NormTask task = {static_cast<const unsigned char *>(data), rows, cols, weight, eps,
                   static_cast<unsigned char *>(out)};
  return result(kernel->norm[dtype](task), bad_row);
}

sparkfp4_status sparkfp4_latent_insert(sparkfp4_tier tier, sparkfp4_dtype dtype, const void *latent, const void *rope,
                                       int64_t tokens, const float *weight, float eps, int round_to_bf16,
                                       void *latent_out, const int64_t *slots, int64_t slot_count,
                                       const sparkfp4_pages *pages, int64_t *bad_row) {
  if (!valid_entries(rope, tokens, slots, slot_count, pages) || !below_end(slots, slot_count, pages)) {
    return SPARKFP4_INVALID;
  }

  sparkfp4_status status =
      sparkfp4_rms_norm(tier, dtype, latent, tokens, kLatent, weight, eps, latent_out, bad_row);
  if (status != SPARKFP4_OK) {
    return status;
  }

  LatentTask task = {static_cast<const unsigned char *>(latent), static_cast<const unsigned char *>(rope), slot_count,
                     weight, eps, round_to_bf16 != 0, slots, pages};
  return result(key_kernel(tier)->latents[dtype](task), bad_row);
}
