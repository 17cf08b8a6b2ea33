// The C interface of keys over host memory: rows are staged to the device by parts. What goes to pages is made as one
// page of the part's tokens, and copied to their slots here: over the bus go the tokens' own bytes alone.
#include <cstdlib>
#include <cstring>

#include "../src/key_arguments.h"
#include "context.h"
#include "keys.h"

namespace sparkfp4::cuda {
namespace {

constexpr int64_t kAlignment = 256;
// What a part takes on the device, as long as a row does not take more.
constexpr int64_t kPartBytes = int64_t{64} << 20;
constexpr int64_t kLeastPartBytes = int64_t{1} << 20;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The caller's rows, or the results', which the parts of a call take in turn.
const unsigned char *row_at(const void *data, int64_t row, int64_t row_bytes) {
  return static_cast<const unsigned char *>(data) + row * row_bytes;
}

unsigned char *row_at(void *data, int64_t row, int64_t row_bytes) {
  return static_cast<unsigned char *>(data) + row * row_bytes;
}

// The memory of a part, taken piece by piece.
class Arena {
 public:
  explicit Arena(unsigned char *memory) : next_(memory) {}

  template <typename T>
  T *take(int64_t bytes) {
    T *taken = reinterpret_cast<T *>(next_);
    next_ += aligned(bytes);
    return taken;
  }

 private:
  unsigned char *next_;
};

// Memory of the C heap.
class HostBytes {
 public:
  explicit HostBytes(int64_t bytes) : data_(static_cast<unsigned char *>(std::malloc(bytes > 0 ? bytes : 1))) {}
  ~HostBytes() { std::free(data_); }
  HostBytes(const HostBytes &) = delete;
  HostBytes &operator=(const HostBytes &) = delete;
  unsigned char *data() const { return data_; }

 private:
  unsigned char *data_;
};

// A call in parts of rows. An operation has
//   row_bytes()                    what a row takes on the device
//   fixed_bytes()                  and what all rows share
//   result_bytes()                 what a row takes of scratch on the host
//   begin(arena)                   uploads what all rows share; only then
//   run(first, count, arena, scratch, bad)   does rows, up to their results in the caller's memory
//   bad_row(first, found)          the caller's row of one that was found in the part from first on
template <typename Operation>
class Parts {
 public:
  Parts(sparkfp4_cuda_context *context, Operation &operation) : context_(context), operation_(operation) {}

  // bad: the first bad rows of all.
  sparkfp4_cuda_status run(int64_t rows, sparkfp4_cuda_bad_rows *bad) {
    *bad = {-1, -1, -1};
    int previous = -1;
    cudaError_t error = cudaGetDevice(&previous);
    if (error == cudaSuccess) {
      error = cudaSetDevice(context_->device);
    }

    if (error != cudaSuccess) {
      return failed(error);
    }

    sparkfp4_cuda_status status = SPARKFP4_CUDA_OUT_OF_MEMORY;
    for (int64_t bytes = kPartBytes; bytes >= kLeastPartBytes && status == SPARKFP4_CUDA_OUT_OF_MEMORY; bytes /= 2) {
      int64_t most = bytes / operation_.row_bytes();
      int64_t count = rows < most ? rows : most > 0 ? most : 1;
      status = context_->reserve(operation_.fixed_bytes() + count * operation_.row_bytes() + kSlack);
      if (status == SPARKFP4_CUDA_OK) {
        status = run(rows, count, bad);
        break;
      }
    }

    cudaSetDevice(previous);
    return status;
  }

 private:
  // Of what is aligned.
  static constexpr int64_t kSlack = 16 * kAlignment;

  sparkfp4_cuda_status run(int64_t rows, int64_t part_rows, sparkfp4_cuda_bad_rows *bad) {
    HostBytes scratch(part_rows * operation_.result_bytes());
    if (scratch.data() == nullptr) {
      return failed(cudaErrorMemoryAllocation);
    }

    Arena fixed(context_->memory);
    sparkfp4_cuda_bad_rows *found = fixed.take<sparkfp4_cuda_bad_rows>(sizeof *found);
    cudaError_t error = operation_.begin(&fixed);
    // Rows that follow a bad one are done for nothing, unless a norm's is told of first.
    for (int64_t first = 0; first < rows && error == cudaSuccess && bad->normalised < 0; first += part_rows) {
      int64_t count = rows - first < part_rows ? rows - first : part_rows;
      Arena arena = fixed;
      sparkfp4_cuda_status status = operation_.run(first, count, arena, scratch.data(), found);
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      sparkfp4_cuda_bad_rows part;
      error = context_->staging.download(&part, reinterpret_cast<unsigned char *>(found), sizeof part);
      if (error == cudaSuccess) {
        bad->normalised = part.normalised < 0 ? -1 : operation_.bad_row(first, part.normalised);
        if (bad->encoded < 0 && part.encoded >= 0) {
          bad->encoded = operation_.bad_row(first, part.encoded);
        }
      }
    }

    return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
  }

  sparkfp4_cuda_context *context_;
  Operation &operation_;
};

// Runs all parts.
template <typename Operation>
sparkfp4_cuda_status run(sparkfp4_cuda_context *context, Operation &operation, int64_t rows, int64_t *bad_row) {
  sparkfp4_cuda_bad_rows bad;
  sparkfp4_cuda_status status = Parts<Operation>(context, operation).run(rows, &bad);
  int64_t first = bad.normalised >= 0 ? bad.normalised : bad.encoded;
  if (status != SPARKFP4_CUDA_OK || first < 0) {
    return status;
  }

  *bad_row = first;
  return SPARKFP4_CUDA_NON_FINITE;
}

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

struct Norm {
  sparkfp4_cuda_context *context;
  sparkfp4_dtype dtype;
  const void *data;
  int64_t cols;
  const float *weight;
  float eps;
  void *out;
  float *weight_on_device = nullptr;

  int64_t bad_row(int64_t first, int64_t found) const { return first + found; }
  int64_t source_bytes() const { return cols * bytes(dtype); }
  int64_t weight_bytes() const { return cols * static_cast<int64_t>(sizeof(float)); }
  int64_t row_bytes() const { return 2 * source_bytes(); }
  int64_t fixed_bytes() const { return aligned(weight_bytes()); }
  int64_t result_bytes() const { return 0; }

  cudaError_t begin(Arena *arena) {
    weight_on_device = arena->take<float>(weight_bytes());
    return context->staging.upload(reinterpret_cast<unsigned char *>(weight_on_device), weight, weight_bytes());
  }

  sparkfp4_cuda_status run(int64_t first, int64_t count, Arena arena, unsigned char *, sparkfp4_cuda_bad_rows *bad) {
    Staging &staging = context->staging;
    unsigned char *source = arena.take<unsigned char>(count * source_bytes());
    unsigned char *normalised = arena.take<unsigned char>(count * source_bytes());
    cudaError_t error = staging.upload(source, row_at(data, first, source_bytes()), count * source_bytes());
    if (error == cudaSuccess) {
      sparkfp4_cuda_status status = sparkfp4_cuda_enqueue_rms_norm(dtype, source, count, cols, weight_on_device, eps,
                                                                   normalised, bad, staging.stream());
      if (status != SPARKFP4_CUDA_OK) {
        return status;
      }

      error = staging.download(row_at(out, first, source_bytes()), normalised, count * source_bytes());
    }

    return error == cudaSuccess ? SPARKFP4_CUDA_OK : failed(error);
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

sparkfp4_cuda_status sparkfp4_cuda_mxfp4_quantize(sparkfp4_cuda_context *context, sparkfp4_scale_rule rule,
                                                  sparkfp4_dtype dtype, const void *data, int64_t rows, int64_t cols,
                                                  void *packed, void *scales, int64_t *bad_row) {
  if (context == nullptr || !valid(rule) || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_quantize(rows, cols, data, packed, scales)) {
    return SPARKFP4_CUDA_INVALID;
  }

  int64_t row_blocks = cols / kKeyBlock;
  Quantize quantize = {context, rule, dtype, data, row_blocks, packed, scales};
  return run(context, quantize, rows * row_blocks, bad_row);
}

sparkfp4_cuda_status sparkfp4_cuda_key_insert(sparkfp4_cuda_context *context, const sparkfp4_key_form *form,
                                              sparkfp4_dtype dtype, const void *keys, int64_t tokens,
                                              const int64_t *slots, const sparkfp4_pages *pages, int64_t *bad_row) {
  if (context == nullptr || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_insert(form, keys, tokens, slots, pages) || !below_end(slots, tokens, pages)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Insert insert = {context, form, dtype, keys, slots, pages};
  return run(context, insert, tokens, bad_row);
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
  return run(context, all, tokens, bad_row);
}

sparkfp4_cuda_status sparkfp4_cuda_rms_norm(sparkfp4_cuda_context *context, sparkfp4_dtype dtype, const void *data,
                                            int64_t rows, int64_t cols, const float *weight, float eps, void *out,
                                            int64_t *bad_row) {
  if (context == nullptr || !sparkfp4::valid(dtype) || bad_row == nullptr ||
      !valid_norm(rows, cols, data, weight, eps, out)) {
    return SPARKFP4_CUDA_INVALID;
  }

  Norm norm = {context, dtype, data, cols, weight, eps, out};
  return run(context, norm, rows, bad_row);
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
  return run(context, latents, tokens, bad_row);
}
