// The codes and scales of blocks of 32, one by one and four at once.
#pragma once

#include "key_norms.h"
#include "key_words.h"

namespace sparkfp4 {
namespace {

constexpr uint32_t kSix = 0x40c00000;
constexpr uint32_t kSmallestAmax = 0x01c00000;  // 6 * 2^-126

// 2^(127 - u)
SPARKFP4_KEY_OP float inverse_scale(uint32_t u) { return bits_as<float>((254 - u) << 23); }

// The squared errors under the scale u, in units of that scale or of the next: is the next one better?
SPARKFP4_KEY_OP bool next_is_better(const Block &x, uint32_t u) {
  Float inverse = all(inverse_scale(u));
  LaneSums errors;
  LaneSums errors_of_next;
  Block e;
  Block next;
  SPARKFP4_EACH_PART {
    for (int half = 0; half < 2; half++) {
      Float y = as<Float>(magnitudes((half == 0 ? x.even[part] : x.odd[part]) * inverse));
      Float q;
      Float q_of_next;
      narrow<1, 0>(at_most(as<Word>(y), kSix), &q);
      narrow<1, 0>(at_most(as<Word>(y * 0.5f), kSix), &q_of_next);
      Float d = y - q;
      Float d_of_next = y - 2.0f * q_of_next;
      (half == 0 ? e.even[part] : e.odd[part]) = d;
      (half == 0 ? next.even[part] : next.odd[part]) = d_of_next;
    }
  }

  errors.add_squares(e);
  errors_of_next.add_squares(next);
  return errors_of_next.total() < errors.total();
}

SPARKFP4_KEY_OP uint32_t scale_byte(sparkfp4_scale_rule rule, uint32_t amax, const Block &x) {
  switch (rule) {
    case SPARKFP4_CEIL:
      return (((amax > kSmallestAmax ? amax : kSmallestAmax) + 0x3fffff) >> 23) - 2;
    case SPARKFP4_EVEN:
      amax += 0x200000;
      [[fallthrough]];
    case SPARKFP4_FLOOR:
      return amax >> 23 > 2 ? (amax >> 23) - 2 : 0;
    default: {
      uint32_t smaller = amax >> 23 > 3 ? (amax >> 23) - 2 : 1;
      return smaller + next_is_better(x, smaller);
    }
  }
}

// The codes of a block times the inverse of its scale.
SPARKFP4_KEY_OP void encode_scaled(const Block &x, Float inverse, unsigned char *packed) {
  SPARKFP4_EACH_PART {
    Float even = x.even[part] * inverse;
    Float odd = x.odd[part] * inverse;
    Float ignored;
    Word low = narrow<1, 0>(at_most(magnitudes(even), kSix), &ignored) | (as<Word>(even) >> 28 & 8);
    Word high = narrow<1, 0>(at_most(magnitudes(odd), kSix), &ignored) << 4 | (as<Word>(odd) >> 24 & 0x80);
    store_vector(packed + kWidth * part, to_bytes(low | high));
  }
}

// False where a value is not finite.
SPARKFP4_KEY_OP bool encode_block(const Block &x, sparkfp4_scale_rule rule, unsigned char *packed,
                                  unsigned char *scale) {
  uint32_t amax = largest_magnitude(x);
  if (amax >= kInfinityBits) {
    return false;
  }

  uint32_t u = scale_byte(rule, amax, x);
  *scale = static_cast<unsigned char>(u);
  encode_scaled(x, all(inverse_scale(u)), packed);
  return true;
}

// The scales of four blocks, which follow from their largest magnitudes alone, in quarters; kNotFinite where a value
// is not.
constexpr uint32_t kNotFinite = 255;

template <typename Blocks>
SPARKFP4_KEY_OP Word scales_of_four(const Blocks *x, sparkfp4_scale_rule rule, uint32_t *bytes) {
  Word lanes[4];
#pragma GCC unroll 4
  for (int b = 0; b < 4; b++) {
    lanes[b] = largest_of_lanes(x[b]);
  }

  Word amax = fold_four(lanes);
  Word u;
  if (rule == SPARKFP4_CEIL) {
    u = ((Max::of(amax, all_words(kSmallestAmax)) + 0x3fffff) >> 23) - 2;
  } else {
    u = Max::of((amax + (rule == SPARKFP4_EVEN ? 0x200000 : 0)) >> 23, all_words(2)) - 2;
  }

  u = amax >= kInfinityBits ? all_words(kNotFinite) : u;
  *bytes = first_four(shuffle(u, u, SPARKFP4_LANES(quarter_firsts)));
  return u;
}

SPARKFP4_KEY_OP bool are_finite(uint32_t scales) {
  return (scales & ((scales & 0x7f7f7f7f) + 0x01010101) & 0x80808080) == 0;
}

// Calls encode(block, its quarter of the factors, place of its codes) for four blocks.
template <typename Vector, typename Encode>
SPARKFP4_KEY_OP void each_of_four(Vector factors, unsigned char *packed, const Encode &encode) {
  encode(0, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<0>)), packed);
  encode(1, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<1>)), packed + kKeyPackedBlock);
  encode(2, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<2>)), packed + 2 * kKeyPackedBlock);
  encode(3, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<3>)), packed + 3 * kKeyPackedBlock);
}

// Four blocks at once; false where a value is not finite.
SPARKFP4_KEY_OP bool encode_four(const Block *x, sparkfp4_scale_rule rule, unsigned char *packed,
                                 unsigned char *scales) {
  uint32_t four;
  Word u = scales_of_four(x, rule, &four);
  std::memcpy(scales, &four, sizeof four);
  each_of_four(as<Float>((254 - u) << 23), packed, [&](int b, Float inverse, unsigned char *to)
                   __attribute__((always_inline)) { encode_scaled(x[b], inverse, to); });
  return are_finite(four);
}

// Four blocks of bfloat16. False, and nothing is written, where encode_four has to do it: a value is not finite, or a
// scale is too small.
SPARKFP4_KEY_OP bool encode_four_words(const WordBlock *x, sparkfp4_scale_rule rule, unsigned char *packed,
                                       unsigned char *scales) {
  uint32_t four;
  Word u = scales_of_four(x, rule, &four);
  bool small = ((four - 0x01010101 * kLeastEighth) & ~four & 0x80808080) != 0;
  if (small || !are_finite(four)) {
    return false;
  }

  std::memcpy(scales, &four, sizeof four);
  Word eighths = (u - kLeastEighth) << 7;
  each_of_four(eighths | eighths << 16, packed, [&](int b, Word eighth, unsigned char *to)
                   __attribute__((always_inline)) { encode_words(x[b], eighth, to); });
  return true;
}

// The same of a row as it is.
SPARKFP4_KEY_OP bool encode_four_words(const unsigned char *source, sparkfp4_scale_rule rule, unsigned char *packed,
                                       unsigned char *scales) {
  WordBlock x[4];
#pragma GCC unroll 4
  for (int b = 0; b < 4; b++) {
    x[b] = load_words(source + b * 2 * kKeyBlock);
  }

  return encode_four_words(x, rule, packed, scales);
}

}  // namespace
}  // namespace sparkfp4
