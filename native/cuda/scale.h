// A unit's global scale, as org.sparkfp4.formats.ScaleSearch.globalScale forms it.
#pragma once

#include "../src/arithmetic.h"

namespace sparkfp4::cuda {

constexpr float kRange = 6.0f * 448.0f;
constexpr float kSearchedRange = 6.0f * 256.0f;
constexpr float kSmallestAmax = kRange * 0x1p-126f;  // below it a unit counts as zero

// bf16: whether the source's elements are.
SPARKFP4_FUNCTION float unit_scale(sparkfp4_recipe recipe, bool searched, bool bf16, float amax) {
  if (amax < kSmallestAmax) {
    return recipe == SPARKFP4_MODELOPT ? 1.0f / kRange : 1.0f;
  }

  if (recipe == SPARKFP4_MODELOPT) {
    return amax / (searched ? kSearchedRange : kRange);
  }

  if (searched) {
    return kSearchedRange / amax;
  }

  float inverse = 1.0f / amax;
  return bf16 ? round_to_bf16(round_to_bf16(inverse) * kRange) : inverse * kRange;
}

SPARKFP4_FUNCTION unsigned char zero_scale(sparkfp4_recipe recipe) {
  return recipe == SPARKFP4_MODELOPT ? 0x38 : 0x20;
}

}  // namespace sparkfp4::cuda
