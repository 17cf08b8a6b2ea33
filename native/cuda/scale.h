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

// Mantissa bits that elements lack of binary32's where their quotients can be products, 0 elsewhere: of bf16, and by
// round to nearest of f16.
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

// Where quotients are moved by kShift of themselves, which is more than they are off by, elements within kMargin ulps
// of a midpoint must be known; a search, which tells ties by itself, moves others further than that takes.
constexpr uint32_t kMargin = 32;
constexpr float kShift = 0x1p-20f;
constexpr uint32_t kSearchedMargin = 128;
constexpr float kSearchedShift = 0x1p-18f;

// Where the code of an element near the midpoint m / 4 of the grid of step d belongs: 0 if no element is near, 2 or -2
// if its quotient is the midpoint.
SPARKFP4_FUNCTION int side_of_midpoint(float d, int m, int free_bits, bool searched) {
  uint32_t margin = searched ? kSearchedMargin : kMargin;
  uint32_t bits = bits_as<uint32_t>(d * static_cast<float>(m));
  uint32_t spacing = 1u << free_bits;
  uint32_t nearest = (bits + spacing / 2) & ~(spacing - 1);
  if (free_bits == 0 || bits - nearest + margin > 2 * margin) {
    return 0;
  }

  // 0.25, 1.25 and its doubles are ties that go down, 0.75, 1.75 and 3.5 go up.
  float quotient = bits_as<float>(nearest) / d;
  float midpoint = static_cast<float>(m);
  if (quotient == midpoint) {
    return m == 3 || m == 7 ? 2 : -2;
  }

  return quotient > midpoint ? 1 : -1;
}

// Bit i + 8 * j: the side of midpoint 2 j + 1 under scales of mantissa 1 + i / 8, and whether it is a tie.
struct Sides {
  uint32_t ups;
  uint32_t downs;
  uint32_t ties;
};

SPARKFP4_FUNCTION void set_halves(ScaleRule *rule, Sides sides, int free_bits, bool searched) {
  float shift = 0.5f * (searched ? kSearchedShift : kShift);
  rule->all_halves = free_bits != 0;
  for (int i = 0; i < 8; i++) {
    uint32_t ups = sides.ups >> i & 0x01010101u;
    uint32_t downs = sides.downs >> i & 0x01010101u;
    bool told = searched && ((ups | downs) & ~(sides.ties >> i)) == 0;
    bool both = ups != 0 && downs != 0;
    rule->halves[i] = told ? 0.5f : both ? 0.0f : ups != 0 ? 0.5f + shift : downs != 0 ? 0.5f - shift : 0.5f;
    rule->all_halves &= told || !both;
  }
}

// The rule of a known scale.
inline ScaleRule known_rule(const Encode &encode) {
  ScaleRule rule = scale_rule(encode, 0);
  bool searched = encode.search != SPARKFP4_RTN;
  Sides sides = {};
  for (int lane = 0; lane < 32; lane++) {
    float d = factor_of(rule, 1 + (lane & 7) / 8.0f);
    int side = side_of_midpoint(d, 2 * (lane / 8) + 1, free_bits(encode), searched);
    sides.ups |= side > 0 ? 1u << lane : 0;
    sides.downs |= side < 0 ? 1u << lane : 0;
    sides.ties |= side == 2 || side == -2 ? 1u << lane : 0;
  }

  set_halves(&rule, sides, free_bits(encode), searched);
  return rule;
}

}  // namespace sparkfp4::cuda
