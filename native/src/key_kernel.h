// The interface of the MXFP4 kernels of an instruction set.
#pragma once

#include "sparkfp4_keys.h"

namespace sparkfp4 {

constexpr int kKeyBlock = 32;        // elements that share a scale
constexpr int kKeyPackedBlock = 16;  // bytes of a block's codes
constexpr int kMaxKeyBlocks = 32;
constexpr int kLatent = 512;
constexpr int kRope = 64;
constexpr int kTile = 128;
constexpr int kTiles = kLatent / kTile;
constexpr int kEntryBytes = kLatent + kTiles * 4 + kRope * 2;

// Rows of dim elements to where they belong.
struct KeyTask {
  const sparkfp4_key_form *form;
  const unsigned char *source;
  int64_t rows;
  const int64_t *slots;  // null: row r to packed + r * dim / 2 and scales + r * dim / 32
  const sparkfp4_pages *pages;
  unsigned char *packed;
  unsigned char *scales;
};

struct NormTask {
  const unsigned char *source;
  int64_t rows;
  int64_t cols;
  const float *weight;
  float eps;
  unsigned char *out;
};

struct LatentTask {
  const unsigned char *latent;
  const unsigned char *rope;
  int64_t tokens;
  const float *weight;
  float eps;
  bool round_to_bf16;
  const int64_t *slots;
  const sparkfp4_pages *pages;
};

// Each gives the first bad row, or -1. By sparkfp4_dtype.
struct KeyKernel {
  int64_t (*keys[3])(const KeyTask &task);
  int64_t (*norm[3])(const NormTask &task);
  int64_t (*latents[3])(const LatentTask &task);
};

extern const KeyKernel kScalarKeys;
#ifdef SPARKFP4_X86
extern const KeyKernel kAvx2Keys;
extern const KeyKernel kAvx512Keys;
#endif

}  // namespace sparkfp4
