// The weights that rates are taken of.
#pragma once

#include <cstdint>
#include <vector>

#include "sparkfp4_cuda.h"

constexpr int64_t kCols = 7168;

// Gaussian weights of deviation 0.02, as bfloat16; repeated, so that a bench begins soon.
std::vector<unsigned char> weights(int64_t elements);

// As many units of device memory as make a multiple of the second-level cache, which take turns.
struct Units {
  int64_t rows;  // of each of two segments
  int count;
  std::vector<unsigned char *> bf16;
  std::vector<unsigned char *> fp8;
  std::vector<unsigned char *> f32_scales;
  std::vector<unsigned char *> e8m0_scales;
  std::vector<unsigned char *> bf16_scales;
  std::vector<unsigned char *> packed;
  std::vector<unsigned char *> scales;
  unsigned char *workspace;
  unsigned char *outcome;
  sparkfp4_error_sums *sums;
  float *importance;
  float amax;

  Units(int64_t rows, int count);
  ~Units();
  Units(const Units &) = delete;
  Units &operator=(const Units &) = delete;

  int64_t elements() const { return 2 * rows * kCols; }
};
