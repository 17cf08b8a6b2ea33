// What the kernels of keys, queries and latents work on. Host and device share it; all pointers are of device memory.
#pragma once

#include <cuda_runtime_api.h>

#include "../src/key_kernel.h"
#include "sparkfp4_cuda_keys.h"

namespace sparkfp4::cuda {

// A divisor of non-negative numbers, which is mostly a power of two.
struct Divisor {
  int64_t value;
  int shift;  // -1 where it is none
};

inline Divisor divisor(int64_t value) {
  bool power = value > 0 && (value & (value - 1)) == 0;
  return {value, power ? __builtin_ctzll(static_cast<unsigned long long>(value)) : -1};
}

struct DevicePages {
  unsigned char *data;
  int64_t slots;
  Divisor tokens;
  int64_t stride;
};

inline DevicePages device_pages(const sparkfp4_pages &pages) {
  return {static_cast<unsigned char *>(pages.data), pages.count * pages.tokens, divisor(pages.tokens), pages.stride};
}

// Rows that become MXFP4: keys to the slots of pages, else the rows that follow each other.
struct KeyRows {
  sparkfp4_key_form form;
  float rotation;          // dim^-1/2
  sparkfp4_dtype dtype;
  const unsigned char *source;
  int64_t rows;            // of the output, where it has padding
  int64_t blocks;          // of the source: the last row may lack some
  const int64_t *slots;    // null without pages
  DevicePages pages;
  unsigned char *packed;
  unsigned char *scales;
  sparkfp4_cuda_bad_rows *bad;
};

// What queries have beside their rows: heads with padding, and weights.
struct QueryHeads {
  int64_t heads;
  Divisor padded;
  sparkfp4_dtype weights_dtype;
  const unsigned char *weights;
  float weight_scale;
  unsigned char *weights_out;
};

struct NormRows {
  sparkfp4_dtype dtype;
  const unsigned char *source;
  int64_t rows;
  int64_t cols;
  const float *weight;
  float eps;
  unsigned char *out;
  sparkfp4_cuda_bad_rows *bad;
};

struct LatentRows {
  NormRows norm;
  const unsigned char *rope;
  int64_t slot_count;
  bool round_to_bf16;
  const int64_t *slots;
  DevicePages pages;
};

// Each enqueues one launch; bad has been set to -1 before. Blocks: rows of the source are of four blocks, one after the
// other; a bad one is told in rows of row_blocks.
cudaError_t launch_blocks(const KeyRows &rows, int64_t row_blocks, cudaStream_t stream);
cudaError_t launch_keys(const KeyRows &rows, cudaStream_t stream);
cudaError_t launch_queries(const KeyRows &rows, const QueryHeads &heads, cudaStream_t stream);
cudaError_t launch_norm(const NormRows &rows, cudaStream_t stream);
cudaError_t launch_latents(const LatentRows &rows, cudaStream_t stream);

// The same, quicker, of rows of 128, norms of some lengths and latents whose addresses are aligned to 16 bytes. Those
// above use them where they can.
bool aligned_blocks(const KeyRows &rows);
bool aligned_keys(const KeyRows &rows);
bool aligned_norm(const NormRows &rows);
bool aligned_latents(const LatentRows &rows);
cudaError_t launch_aligned_blocks(const KeyRows &rows, int64_t row_blocks, cudaStream_t stream);
cudaError_t launch_aligned_keys(const KeyRows &rows, cudaStream_t stream);
bool takes_normed_keys(const sparkfp4_key_form &form);
cudaError_t launch_normed_keys(const KeyRows &rows, cudaStream_t stream);
cudaError_t launch_formed_keys(const KeyRows &rows, cudaStream_t stream);
cudaError_t launch_aligned_queries(const KeyRows &rows, const QueryHeads &heads, cudaStream_t stream);
cudaError_t launch_aligned_norm(const NormRows &rows, cudaStream_t stream);
cudaError_t launch_aligned_latents(const LatentRows &rows, cudaStream_t stream);

}  // namespace sparkfp4::cuda
