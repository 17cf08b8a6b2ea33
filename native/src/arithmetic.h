// The formats' arithmetic on single values: binary32, one rounding an operation.
//
// Every function is static: the tiers are compiled for different instruction sets, and a shared definition would leave
// the choice of instructions to the linker. CUDA kernels use them too.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernel.h"

#ifdef __CUDACC__
#define SPARKFP4_FUNCTION __host__ __device__ static inline
#else
#define SPARKFP4_FUNCTION static inline
#endif

namespace sparkfp4 {

struct Bf16 {
  static constexpr int kSource = SPARKFP4_BF16;
  static constexpr bool kCodes = false;
  static constexpr int kBlockBytes = 32;
  using Bits = uint16_t;
  static constexpr Bits kMagnitude = 0x7fff;
  static constexpr Bits kInfinity = 0x7f80;
};

struct F16 {
  static constexpr int kSource = SPARKFP4_F16;
  static constexpr bool kCodes = false;
  static constexpr int kBlockBytes = 32;
  using Bits = uint16_t;
  static constexpr Bits kMagnitude = 0x7fff;
  static constexpr Bits kInfinity = 0x7c00;
};

struct F32 {
  static constexpr int kSource = SPARKFP4_F32;
  static constexpr bool kCodes = false;
  static constexpr int kBlockBytes = 64;
  using Bits = uint32_t;
  static constexpr Bits kMagnitude = 0x7fffffff;
  static constexpr Bits kInfinity = 0x7f800000;
};

// Elements that are products of a code and a scale, binary32 from there on.
template <sparkfp4_codes kType, int kBits>
struct Codes {
  static constexpr int kSource = kCodeSources + kType;
  static constexpr bool kCodes = true;
  static constexpr int kBlockBytes = 2 * kBits;
  using Bits = uint32_t;
  static constexpr Bits kMagnitude = F32::kMagnitude;
  static constexpr Bits kInfinity = F32::kInfinity;
};

using E4m3 = Codes<SPARKFP4_E4M3, 8>;
using Int4 = Codes<SPARKFP4_INT4, 4>;
using E2m1 = Codes<SPARKFP4_E2M1, 4>;

template <typename To, typename From>
SPARKFP4_FUNCTION To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename Type>
SPARKFP4_FUNCTION typename Type::Bits load_bits(const unsigned char *source, int64_t index) {
  typename Type::Bits bits;
  std::memcpy(&bits, source + index * sizeof bits, sizeof bits);
  return bits;
}

// Exact.
template <typename Type>
SPARKFP4_FUNCTION float widen(typename Type::Bits bits) {
  if constexpr (sizeof bits == 4) {
    return bits_as<float>(bits);
  } else if constexpr (Type::kInfinity == Bf16::kInfinity) {
    return bits_as<float>(static_cast<uint32_t>(bits) << 16);
  } else {
    // As binary32 bits the exponent is 112 too small; the product mends that, for subnormals too.
    uint32_t magnitude = static_cast<uint32_t>(bits & Type::kMagnitude) << 13;
    float scaled = bits_as<float>(magnitude) * 0x1p112f;
    bool finite = (bits & Type::kMagnitude) < Type::kInfinity;
    uint32_t wide = finite ? bits_as<uint32_t>(scaled) : (magnitude | 0x7f800000);
    return bits_as<float>(wide | static_cast<uint32_t>(bits & 0x8000) << 16);
  }
}

// To bfloat16, nearest even; x is finite.
SPARKFP4_FUNCTION float round_to_bf16(float x) {
  uint32_t bits = bits_as<uint32_t>(x);
  return bits_as<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

// 0 <= x <= 448 to E4M3, nearest even, as the value that the byte stands for.
SPARKFP4_FUNCTION float round_to_e4m3(float x) {
  if (x < 0x1p-6f) {
    // The spacing of floats at 2^14 is 2^-9, that of E4M3's subnormals.
    return (x + 0x1.8p14f) - 0x1.8p14f;
  }

  uint32_t bits = bits_as<uint32_t>(x);
  return bits_as<float>((bits + 0x7ffff + (bits >> 20 & 1)) & 0xfff00000);
}

// The byte of a value that E4M3 has.
SPARKFP4_FUNCTION unsigned char e4m3_byte(float value) {
  if (value < 0x1p-6f) {
    return static_cast<unsigned char>(value * 0x1p9f);
  }

  return static_cast<unsigned char>((bits_as<uint32_t>(value) >> 20) - (120 << 3));
}

// A block's scale as E4M3 has it, from the block's amax, the E2M1 value that it is to become, and the global scale as
// stored.
template <sparkfp4_recipe kRecipe, typename Type>
SPARKFP4_FUNCTION float block_scale(float amax, float largest, float global_scale) {
  if (kRecipe == SPARKFP4_MODELOPT) {
    float ratio = amax / (largest * global_scale);
    if (ratio == 0) {
      return 1.0f;
    }

    return round_to_e4m3(ratio < 0x1p-9f ? 0x1p-9f : ratio > 448.0f ? 448.0f : ratio);
  }

  float part = amax / largest;
  if (sizeof(typename Type::Bits) == 2 && Type::kInfinity == Bf16::kInfinity) {
    part = round_to_bf16(part);
  }

  float ratio = global_scale * part;
  float scale = round_to_e4m3(ratio > 448.0f ? 448.0f : ratio);
  return scale == 0 ? 0.125f : scale;
}

// The d of w = e2m1(code) * d.
template <sparkfp4_recipe kRecipe>
SPARKFP4_FUNCTION float dequant_factor(float scale, float global_scale) {
  return kRecipe == SPARKFP4_MODELOPT ? scale * global_scale : scale / global_scale;
}

// Index of the E2M1 magnitude next to x >= 0, ties to the even one.
SPARKFP4_FUNCTION uint32_t e2m1_index(float x) {
  return (x > 0.25f) + (x >= 0.75f) + (x > 1.25f) + (x >= 1.75f) + (x > 2.5f) + (x >= 3.5f) + (x > 5.0f);
}

SPARKFP4_FUNCTION float e2m1_magnitude(uint32_t index) {
  static constexpr float kMagnitudes[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  return kMagnitudes[index];
}

// The value of an E4M3 byte; NaN for the two that are.
SPARKFP4_FUNCTION float e4m3_value(uint32_t code) {
  uint32_t magnitude = code & 0x7f;
  // Below 8 the code counts steps of 2^-9: read with the exponent of the lowest binade, the value is 2^-6 too large.
  uint32_t normal = (magnitude < 8 ? magnitude + 8 : magnitude) << 20;
  float value = bits_as<float>(normal + (120u << 23)) - (magnitude < 8 ? 0x1p-6f : 0.0f);
  uint32_t bits = magnitude == 0x7f ? 0x7fc00000 : bits_as<uint32_t>(value);
  return bits_as<float>(bits | (code & 0x80) << 24);
}

// The value of an Int4's or E2m1's code.
template <typename Type>
SPARKFP4_FUNCTION float nibble_value(uint32_t code) {
  if constexpr (Type::kSource == Int4::kSource) {
    return static_cast<float>(static_cast<int>(code) - 8);
  } else {
    // 0 and 0.5 are E2M1's subnormals: read with the exponent of 1 they are 1 too large.
    uint32_t index = code & 7;
    uint32_t normal = (index < 2 ? index + 2 : index) << 22;
    float magnitude = bits_as<float>(normal + (126u << 23)) - (index < 2 ? 1.0f : 0.0f);
    return bits_as<float>(bits_as<uint32_t>(magnitude) | (code & 8) << 28);
  }
}

// The value of the code of an element.
template <typename Type>
SPARKFP4_FUNCTION float code_value(const unsigned char *source, int64_t index) {
  if constexpr (Type::kSource == E4m3::kSource) {
    return e4m3_value(source[index]);
  } else {
    return nibble_value<Type>(source[index / 2] >> index % 2 * 4 & 0xf);
  }
}

// An element of a block, dequantized where it is a code; scale is the source's.
template <typename Type>
SPARKFP4_FUNCTION typename Type::Bits load_element(const unsigned char *block, int i, float scale) {
  if constexpr (Type::kCodes) {
    return bits_as<uint32_t>(code_value<Type>(block, i) * scale);
  } else {
    return load_bits<Type>(block, i);
  }
}

// Sums 16 values by the fixed tree: i with i + 8, then i + 4, i + 2, i + 1.
template <typename Real>
SPARKFP4_FUNCTION Real sum_tree(Real *terms) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; i++) {
      terms[i] += terms[i + half];
    }
  }

  return terms[0];
}

}  // namespace sparkfp4
