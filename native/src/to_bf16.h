// Codes to bfloat16: loops that the compiler makes vectors of, in each tier's file with that tier's instructions.
#pragma once

#include "arithmetic.h"

namespace sparkfp4 {

// From this magnitude on binary32 rounds to bfloat16's infinity.
constexpr uint32_t kRoundsToInfinity = 0x7f7f8000;

struct Rounded {
  uint16_t bits;
  uint32_t magnitude;  // before the rounding
};

static inline Rounded to_bf16(float x) {
  uint32_t bits = bits_as<uint32_t>(x);
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16), bits & F32::kMagnitude};
}

// The Tier, of internal linkage, keeps the instances of the files apart.
template <typename Tier, typename Type>
static uint32_t bytes_to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  constexpr int kChunk = 256;
  uint32_t largest = 0;
  for (int64_t start = 0; start < elements; start += kChunk) {
    int count = static_cast<int>(elements - start < kChunk ? elements - start : kChunk);
    uint16_t rounded[kChunk];
    for (int i = 0; i < count; i++) {
      Rounded element = to_bf16(e4m3_value(source[start + i]) * scale);
      largest = element.magnitude > largest ? element.magnitude : largest;
      rounded[i] = element.bits;
    }

    std::memcpy(out + 2 * start, rounded, 2 * count);
  }

  return largest;
}

// Nibbles have 16 values under a scale: their table is made once.
template <typename Tier, typename Type>
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

template <typename Tier, typename Type>
static uint32_t to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  if constexpr (Type::kSource == E4m3::kSource) {
    return bytes_to_bf16<Tier, Type>(source, scale, elements, out);
  } else {
    return nibbles_to_bf16<Tier, Type>(source, scale, elements, out);
  }
}

}  // namespace sparkfp4
