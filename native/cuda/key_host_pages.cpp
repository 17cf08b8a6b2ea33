// The C interface over host memory of what goes to slots of a cache's pages. It is made as one page of a part's tokens, and
// copied to the slots here: over the bus go the tokens' own bytes alone.
#include <cstring>

#include "key_norm.h"

namespace sparkfp4::cuda {
namespace {

// The slots of a part in a page of its own: a token's is its place in the part.
void set_local_slots(const int64_t *slots, int64_t count, int64_t *local) {
  for (int64_t i = 0; i < count; i++) {
    local[i] = slots[i] < 0 ? -1 : i;
  }
}

// Where a slot's page is, and its token there.
unsigned char *page_of(const sparkfp4_pages &pages, int64_t slot, int64_t *token) {
  *token = slot % pages.tokens;
  return row_at(pages.data, slot / pages.tokens, pages.stride);
}

struct Insert {
  sparkfp4_cuda_context *context;
  const sparkfp4_key_form *form;
  sparkfp4_dtype dtype;
  const void *keys;
  const int64_t *slots;
  const sparkfp4_pages *pages;
  sparkfp4_key_form on_device = {};

  int64_t bad_row(int64_t first, int64_t found) const { return first + found; }
  int64_t source_bytes() const { return form->dim * bytes(dtype); }
  int64_t packed_bytes() const { return form->dim / 2; }
  int64_t scales_bytes() const { return form->dim / kKeyBlock; }
  int64_t weight_bytes() const { return form->dim * static_cast<int64_t>(sizeof(float)); }
  int64_t result_bytes() const {
    return packed_bytes() + scales_bytes() + static_cast<int64_t>(sizeof(int64_t));
  }
  int64_t row_bytes() const { return source_bytes() + result_bytes(); }
  int64_t fixed_bytes() const { return form->norm_weight == nullptr ? 0 : 2 * aligned(weight_bytes()); }

  cudaError_t begin(Arena *arena) {
    on_device = *form;
    if (form->norm_weight == nullptr) {
      return cudaSuccess;
    }

    float *weight = arena->take<float>(weight_bytes());
    float *bias = arena->take<float>(weight_bytes());
    on_device.norm_weight = weight;
    on_device.norm_bias = bias;
    Staging &staging = context->staging;
    cudaError_t error = staging.upload(reinterpret_cast<unsigned char *>(weight), form->norm_weight, weight_bytes());
    return error == cudaSuccess
               ? staging.upload(reinterpret_cast<unsigned char *>(bias), form->norm_bias, weight_bytes())
               : error;
  }

  sparkfp4_cuda_status run(int64_t first, int64_t count, Arena arena, unsigned char *scratch,
                           sparkfp4_cuda_bad_rows *bad) {
    Staging &staging = context->staging;
    int64_t slot_bytes = count * static_cast<int64_t>(sizeof(int64_t));
    int64_t page_bytes = count * (packed_bytes() + scales_bytes());
    unsigned char *source = arena.take<unsigned char>(count * source_bytes());
    unsigned char *page = arena.take<unsigned char>(page_bytes);
    int64_t *places = arena.take<int64_t>(slot_bytes);
    set_local_slots(slots + first, count, reinterpret_cast<int64_t *>(scratch));
    cudaError_t error = staging.upload(source, row_at(keys, first, source_bytes()), count * source_bytes());
    if (error == cudaSuccess) {
      error = staging.upload(reinterpret_cast<unsigned char *>(places), scratch, slot_bytes);
    }

    if (error == cudaSuccess) {
      sparkfp4_pages one = {page, 1, count, page_bytes};
      sparkfp4_cuda_status status = sparkfp4_cuda_enqueue_key_insert(&on_device, dtype, source, count, places, &one,
                                                                     bad, staging.stream());
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      error = staging.download(scratch, page, page_bytes);
    }

    if (error != cudaSuccess) {
      return failed(error);
    }

    scatter(slots + first, count, scratch);
    return SPARKFP4_CUDA_OK;
  }

  void scatter(const int64_t *to, int64_t count, const unsigned char *page) const {
    const unsigned char *scales = page + count * packed_bytes();
    for (int64_t i = 0; i < count; i++) {
      if (to[i] >= 0) {
        int64_t token;
        unsigned char *out = page_of(*pages, to[i], &token);
        std::memcpy(out + token * packed_bytes(), page + i * packed_bytes(), packed_bytes());
        std::memcpy(out + pages->tokens * packed_bytes() + token * scales_bytes(), scales + i * scales_bytes(),
                    scales_bytes());
      }
    }
  }
};

struct Latents {
  Norm norm;
  const void *rope;
  bool round_to_bf16;
  const int64_t *slots;
  int64_t slot_count;
  const sparkfp4_pages *pages;

  int64_t bad_row(int64_t first, int64_t found) const { return first + found; }
  int64_t rope_bytes() const { return kRope * bytes(norm.dtype); }
  int64_t result_bytes() const { return kEntryBytes + static_cast<int64_t>(sizeof(int64_t)); }
  int64_t row_bytes() const { return norm.row_bytes() + rope_bytes() + result_bytes(); }
  int64_t fixed_bytes() const { return norm.fixed_bytes(); }
  cudaError_t begin(Arena *arena) { return norm.begin(arena); }

  sparkfp4_cuda_status run(int64_t first, int64_t count, Arena arena, unsigned char *scratch,
                           sparkfp4_cuda_bad_rows *bad) {
    Staging &staging = norm.context->staging;
    int64_t bytes_of_latents = count * norm.source_bytes();
    // Those of the part that a slot was given for.
    int64_t slotted = slot_count <= first ? 0 : slot_count - first < count ? slot_count - first : count;
    int64_t slot_bytes = slotted * static_cast<int64_t>(sizeof(int64_t));
    unsigned char *source = arena.take<unsigned char>(bytes_of_latents);
    unsigned char *of_rope = arena.take<unsigned char>(slotted * rope_bytes());
    unsigned char *normalised = arena.take<unsigned char>(bytes_of_latents);
    unsigned char *entries = arena.take<unsigned char>(slotted * kEntryBytes);
    int64_t *places = arena.take<int64_t>(slot_bytes);
    set_local_slots(slots + first, slotted, reinterpret_cast<int64_t *>(scratch));
    cudaError_t error =
        staging.upload(source, row_at(norm.data, first, norm.source_bytes()), bytes_of_latents);
    if (error == cudaSuccess) {
      error = staging.upload(of_rope, row_at(rope, first, rope_bytes()), slotted * rope_bytes());
    }

    if (error == cudaSuccess) {
      error = staging.upload(reinterpret_cast<unsigned char *>(places), scratch, slot_bytes);
    }

    if (error == cudaSuccess) {
      sparkfp4_pages one = {entries, slotted > 0, slotted > 0 ? slotted : 1, (slotted > 0 ? slotted : 1) * kEntryBytes};
      sparkfp4_cuda_status status = sparkfp4_cuda_enqueue_latent_insert(
          norm.dtype, source, of_rope, count, norm.weight_on_device, norm.eps, round_to_bf16, normalised, places,
          slotted, &one, bad, staging.stream());
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      error = staging.download(row_at(norm.out, first, norm.source_bytes()), normalised, bytes_of_latents);
    }

    if (error == cudaSuccess) {
      error = staging.download(scratch, entries, slotted * kEntryBytes);
    }

    if (error != cudaSuccess) {
      return failed(error);
    }

    for (int64_t i = 0; i < slotted; i++) {
      if (slots[first + i] >= 0) {
        int64_t token;
        unsigned char *page = page_of(*pages, slots[first + i], &token);
        std::memcpy(page + token * kEntryBytes, scratch + i * kEntryBytes, kEntryBytes);
      }
    }

    return SPARKFP4_CUDA_OK;
  }
};

}  // namespace
}  // namespace sparkfp4::cuda

using namespace sparkfp4;
using namespace sparkfp4::cuda;

sparkfp4_cuda_status sparkfp4_cuda_key_insert(sparkfp4_cuda_context *context, const sparkfp4_key_form *form,
                                              sparkfp4_dtype dtype, const void *keys, int64_t tokens,
                                              const int64_t *slots, const sparkfp4_pages *pages, int64_t *bad_row) {
  if (context == nullptr || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_insert(form, keys, tokens, slots, pages) || !below_end(slots, tokens, pages)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Insert insert = {context, form, dtype, keys, slots, pages};
  return run_rows(context, insert, tokens, bad_row);
}

sparkfp4_cuda_status sparkfp4_cuda_latent_insert(sparkfp4_cuda_context *context, sparkfp4_dtype dtype,
                                                 const void *latent, const void *rope, int64_t tokens,
                                                 const float *weight, float eps, int round_to_bf16, void *latent_out,
                                                 const int64_t *slots, int64_t slot_count, const sparkfp4_pages *pages,
                                                 int64_t *bad_row) {
  if (context == nullptr || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_norm(tokens, kLatent, latent, weight, eps, latent_out) ||
      !valid_entries(rope, tokens, slots, slot_count, pages) || !below_end(slots, slot_count, pages)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Latents latents = {{context, dtype, latent, kLatent, weight, eps, latent_out},
                     rope,
                     round_to_bf16 != 0,
                     slots,
                     slot_count,
                     pages};
  return run_rows(context, latents, tokens, bad_row);
}
