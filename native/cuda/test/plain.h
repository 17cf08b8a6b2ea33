// What the tests of BF16, F16 and F32 sources share: units, and calls held to those of the CPU.
#pragma once

#include "check.h"

struct PlainUnit {
  sparkfp4_dtype dtype;
  int64_t cols;
  std::vector<int64_t> rows;
  std::vector<Bytes> data;

  int64_t elements() const { return elements_of(rows, cols); }
};

struct PlainCall {
  sparkfp4_recipe recipe;
  sparkfp4_search search;
  const std::vector<float> *importance;
  float global_scale;  // 0: of the unit
  bool with_sums;
};

constexpr sparkfp4_recipe kRecipes[] = {SPARKFP4_MODELOPT, SPARKFP4_COMPRESSED_TENSORS};

PlainUnit draw_unit(sparkfp4_dtype dtype, Kind kind, int64_t cols, std::vector<int64_t> rows, Random &random);

// What a weighted search weighs errors by.
std::vector<float> draw_importance(sparkfp4_search search, int64_t cols, Random &random);

// Both faces beside the CPU; offset: of all addresses on the device from aligned ones.
void compare(sparkfp4_cuda_context *context, const PlainUnit &unit, const PlainCall &call, size_t offset);
void compare_amax(sparkfp4_cuda_context *context, const PlainUnit &unit, size_t offset);
