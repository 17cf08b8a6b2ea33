// Codes to bfloat16: loops that the compiler makes vectors of, in each tier's file with that tier's instructions.
#pragma once

#include "arithmetic.h"

namespace sparkfp4 {

// The Tier, of internal linkage, keeps the instances of the files apart.
template <typename Tier, typename Type>
static uint32_t to_bf16(const unsigned char *source, float scale, int64_t elements, unsigned char *out) {
  constexpr int kChunk = 256;
  uint32_t largest = 0;
  for (int64_t start = 0; start < elements; start += kChunk) {
    int count = static_cast<int>(elements - start < kChunk ? elements - start : kChunk);
    float values[kChunk];
    const unsigned char *codes = source + start * Type::kBlockBytes / kBlock;
    if constexpr (Type::kSource == E4m3::kSource) {
      for (int i = 0; i < count; i++) {
        values[i] = e4m3_value(codes[i]);
      }
    } else {
      // The half of a last byte that lies past the row is decoded and not used.
      for (int i = 0; i < (count + 1) / 2; i++) {
        values[2 * i] = nibble_value<Type>(codes[i] & 0xf);
        values[2 * i + 1] = nibble_value<Type>(codes[i] >> 4);
      }
    }

    uint16_t rounded[kChunk];
    for (int i = 0; i < count; i++) {
      uint32_t bits = bits_as<uint32_t>(values[i] * scale);
      uint32_t magnitude = bits & F32::kMagnitude;
      largest = magnitude > largest ? magnitude : largest;
      rounded[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }

    std::memcpy(out + 2 * start, rounded, 2 * count);
  }

  return largest;
}

}  // namespace sparkfp4
