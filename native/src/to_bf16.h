// Codes to bfloat16, a code at a time.
#pragma once

#include "arithmetic.h"

namespace sparkfp4 {

struct Rounded {
  uint16_t bits;
  uint32_t magnitude;  // before the rounding
};

static inline Rounded to_bf16(float x) {
  uint32_t bits = bits_as<uint32_t>(x);
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16), bits & F32::kMagnitude};
}

// Nibbles have 16 values under a scale: their table is made once.
template <typename Type>
static uint32_t nibbles_to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  uint16_t table[16];
  uint32_t largest = 0;
  for (int code = 0; code < 16; code++) {
    Rounded element = to_bf16(nibble_value<Type>(code) * scale);
    largest = element.magnitude > largest ? element.magnitude : largest;
    table[code] = element.bits;
  }

  if (largest >= kRoundsToInfinity) {
    // Only codes that are there count.
    largest = 0;
    for (int64_t i = 0; i < elements; i++) {
      uint32_t magnitude = to_bf16(code_value<Type>(source, i) * scale).magnitude;
      largest = magnitude > largest ? magnitude : largest;
    }
  }

  int64_t pairs = elements / 2;
  for (int64_t i = 0; i < pairs; i++) {
    uint32_t pair = table[source[i] & 0xf] | static_cast<uint32_t>(table[source[i] >> 4]) << 16;
    std::memcpy(out + 4 * i, &pair, sizeof pair);
  }

  if (elements % 2 != 0) {
    std::memcpy(out + 4 * pairs, &table[source[pairs] & 0xf], sizeof table[0]);
  }

  return largest;
}

// One run.
template <typename Type>
static uint32_t run_to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  if constexpr (Type::kSource != E4m3::kSource) {
    return nibbles_to_bf16<Type>(source, scale, elements, out);
  }

  uint32_t largest = 0;
  for (int64_t i = 0; i < elements; i++) {
    Rounded element = to_bf16(code_value<Type>(source, i) * scale);
    largest = element.magnitude > largest ? element.magnitude : largest;
    std::memcpy(out + 2 * i, &element.bits, sizeof element.bits);
  }

  return largest;
}

// Runs one after the other by what does one of them.
template <typename Type, typename OneRun>
static inline uint32_t each_run(const unsigned char *source, const float *scales, int64_t run, int64_t elements,
                                unsigned char *out, OneRun one_run) {
  uint32_t largest = 0;
  for (int64_t first = 0; first < elements; first += run) {
    int64_t count = elements - first < run ? elements - first : run;
    uint32_t magnitude = one_run(source + first * Type::kBlockBytes / kBlock, *scales++, count, out + 2 * first);
    largest = magnitude > largest ? magnitude : largest;
  }

  return largest;
}

template <typename Type>
static uint32_t to_bf16(const unsigned char *source, const float *scales, int64_t run, int64_t elements,
                        unsigned char *out) {
  return each_run<Type>(source, scales, run, elements, out, run_to_bf16<Type>);
}

}  // namespace sparkfp4
