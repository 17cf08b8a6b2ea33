// A unit's global scale, as org.sparkfp4.formats.ScaleSearch.globalScale forms it.
#pragma once

#include "../src/arithmetic.h"
#include "batch.h"

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

// Mantissa bits that elements lack of binary32's where their quotients can be products, 0 elsewhere: of bf16, and by round to
// nearest of f16.
SPARKFP4_FUNCTION int free_bits(const Encode &encode) {
  bool of_half = encode.source.kind == SPARKFP4_F16 && encode.search == SPARKFP4_RTN;
  return encode.source.kind == SPARKFP4_BF16 ? 16 : of_half ? 13 : 0;
}

// The d of a scale under the rule.
SPARKFP4_FUNCTION float factor_of(const ScaleRule &rule, float scale) {
  return rule.modelopt ? scale * rule.global_scale : scale / rule.global_scale;
}

// All of a rule but halves.
SPARKFP4_FUNCTION ScaleRule scale_rule(const Encode &encode, float amax) {
  ScaleRule rule = {};
  rule.modelopt = encode.recipe == SPARKFP4_MODELOPT;
  rule.zero = encode.of_unit && amax < kSmallestAmax;
  bool searched = encode.search != SPARKFP4_RTN;
  rule.global_scale = encode.of_unit
                          ? unit_scale(encode.recipe, searched, encode.source.kind == SPARKFP4_BF16, amax)
                          : encode.global_scale;
  for (int i = 0; i < 2; i++) {
    float largest = i == 0 ? 6.0f : 4.0f;
    rule.by_largest[i] = rule.modelopt ? largest * rule.global_scale : largest;
    rule.by_largest_inverse[i] = 1.0f / rule.by_largest[i];
  }

  rule.inverse_scale = 1.0f / rule.global_scale;
  float size = rule.modelopt ? rule.global_scale : rule.inverse_scale;
  rule.ordinary = size >= 0x1p-60f && size <= 0x1p7f;
  return rule;
}

// Where the code of an element near the midpoint m / 4 of the grid of step d belongs: 0 if no element is near.
SPARKFP4_FUNCTION int side_of_midpoint(float d, int m, int free_bits) {
  constexpr uint32_t kMargin = 32;  // in ulps
  uint32_t bits = bits_as<uint32_t>(d * static_cast<float>(m));
  uint32_t spacing = 1u << free_bits;
  uint32_t nearest = (bits + spacing / 2) & ~(spacing - 1);
  if (free_bits == 0 || bits - nearest + kMargin > 2 * kMargin) {
    return 0;
  }

  // 0.25, 1.25 and its doubles are ties that go down, 0.75, 1.75 and 3.5 go up.
  float quotient = bits_as<float>(nearest) / d;
  float midpoint = static_cast<float>(m);
  return quotient > midpoint || (quotient == midpoint && (m == 3 || m == 7)) ? 1 : -1;
}

// Bit i + 8 * j of ups and downs: the side of midpoint 2 j + 1 under scales of mantissa 1 + i / 8.
SPARKFP4_FUNCTION void set_halves(ScaleRule *rule, uint32_t ups, uint32_t downs, int free_bits) {
  rule->all_halves = free_bits != 0;
  for (int i = 0; i < 8; i++) {
    bool up = (ups >> i & 0x01010101u) != 0;
    bool down = (downs >> i & 0x01010101u) != 0;
    rule->halves[i] = up && down ? 0.0f : up ? 0.5f + 0x1p-21f : down ? 0.5f - 0x1p-21f : 0.5f;
    rule->all_halves &= !(up && down);
  }
}

// The rule of a known scale.
inline ScaleRule known_rule(const Encode &encode) {
  ScaleRule rule = scale_rule(encode, 0);
  uint32_t ups = 0;
  uint32_t downs = 0;
  for (int lane = 0; lane < 32; lane++) {
    int side = side_of_midpoint(factor_of(rule, 1 + (lane & 7) / 8.0f), 2 * (lane / 8) + 1, free_bits(encode));
    ups |= side > 0 ? 1u << lane : 0;
    downs |= side < 0 ? 1u << lane : 0;
  }

  set_halves(&rule, ups, downs, free_bits(encode));
  return rule;
}

}  // namespace sparkfp4::cuda
