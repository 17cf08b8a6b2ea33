// Sixteen elements of each kind of source as a thread holds them.
//
// All kinds have
//   load(source, aligned)   from memory
//   largest()               the largest magnitude, without scale: bits that order as values do
//   weight(i, scale)        an element as binary32
// and those that narrow, whose magnitudes fit bfloat16 or binary16, also
//   magnitude(i)            |w| in units of kUnit times the scale
//   signs(half)             bit 3 of each nibble: whether an element of that half is below zero
#pragma once

#include "../src/arithmetic.h"
#include "permute.cuh"

namespace sparkfp4::cuda {

// 16 bytes at any address.
__device__ __forceinline__ uint4 load16(const unsigned char *source, bool aligned) {
  if (aligned) {
    return *reinterpret_cast<const uint4 *>(source);
  }

  uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    words[i] = source[4 * i] | source[4 * i + 1] << 8 | source[4 * i + 2] << 16 |
               static_cast<uint32_t>(source[4 * i + 3]) << 24;
  }

  return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ __forceinline__ uint2 load8(const unsigned char *source, bool aligned) {
  if (aligned) {
    return *reinterpret_cast<const uint2 *>(source);
  }

  uint32_t words[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    words[i] = source[4 * i] | source[4 * i + 1] << 8 | source[4 * i + 2] << 16 |
               static_cast<uint32_t>(source[4 * i + 3]) << 24;
  }

  return make_uint2(words[0], words[1]);
}

__device__ __forceinline__ void store8(unsigned char *out, uint2 words, bool aligned) {
  if (aligned) {
    *reinterpret_cast<uint2 *>(out) = words;
    return;
  }

#pragma unroll
  for (int i = 0; i < 4; i++) {
    out[i] = static_cast<unsigned char>(words.x >> 8 * i);
    out[4 + i] = static_cast<unsigned char>(words.y >> 8 * i);
  }
}

__host__ __device__ __forceinline__ bool is_aligned(const void *address, int bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

// The larger of two pairs of bfloat16 or binary16 magnitudes; NaN where there is one.
template <typename Type>
__device__ __forceinline__ uint32_t max_pair(uint32_t a, uint32_t b) {
  uint32_t max;
  if constexpr (Type::kInfinity == Bf16::kInfinity) {
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(max) : "r"(a), "r"(b));
  } else {
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(max) : "r"(a), "r"(b));
  }

  return max;
}

// The same pair, but -0 as 0.
template <typename Type>
__device__ __forceinline__ uint32_t without_negative_zero(uint32_t pair) {
  uint32_t sum;
  if constexpr (Type::kInfinity == Bf16::kInfinity) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(pair), "r"(0x3f803f80u), "r"(0u));
  } else {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(pair), "r"(0x3c003c00u), "r"(0u));
  }

  return sum;
}

// Of eight bytes, elements 0, 2, 4, 6 and 1, 3, 5, 7, the highest bits as nibbles.
__device__ __forceinline__ uint32_t sign_nibbles(uint32_t even, uint32_t odd) {
  return (even >> 4 & 0x08080808u) | (odd & 0x80808080u);
}

template <typename Type>
__device__ __forceinline__ float low_half(uint32_t pair) {
  if constexpr (Type::kInfinity == Bf16::kInfinity) {
    return __uint_as_float(pair << 16);
  } else {
    float value;
    asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low; }" : "=f"(value) : "r"(pair));
    return value;
  }
}

template <typename Type>
__device__ __forceinline__ float high_half(uint32_t pair) {
  if constexpr (Type::kInfinity == Bf16::kInfinity) {
    return __uint_as_float(pair & 0xffff0000u);
  } else {
    float value;
    asm("{ .reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, high; }" : "=f"(value) : "r"(pair));
    return value;
  }
}

// BF16 and F16.
template <typename Type>
struct Block {
  static constexpr bool kNarrow = true;
  static constexpr float kUnit = 1;
  // Bits of a binary32 mantissa that a magnitude lacks.
  static constexpr int kFreeBits = Type::kInfinity == Bf16::kInfinity ? 16 : 13;

  uint32_t pairs[8];

  __device__ void load(const unsigned char *source, bool aligned) {
    uint4 low = load16(source, aligned);
    uint4 high = load16(source + 16, aligned);
    pairs[0] = low.x, pairs[1] = low.y, pairs[2] = low.z, pairs[3] = low.w;
    pairs[4] = high.x, pairs[5] = high.y, pairs[6] = high.z, pairs[7] = high.w;
  }

  __device__ uint32_t largest() const {
    uint32_t max[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      max[i] = max_pair<Type>(pairs[i] & 0x7fff7fffu, pairs[i + 4] & 0x7fff7fffu);
    }

    uint32_t pair = max_pair<Type>(max_pair<Type>(max[0], max[1]), max_pair<Type>(max[2], max[3]));
    return max_pair<Type>(pair, pair >> 16) & 0xffff;
  }

  // largest() as the value of the block's largest |w|.
  static __device__ float value(uint32_t largest, float) { return low_half<Type>(largest); }

  __device__ float magnitude(int i) const {
    uint32_t pair = pairs[i / 2] & 0x7fff7fffu;
    return i % 2 == 0 ? low_half<Type>(pair) : high_half<Type>(pair);
  }

  __device__ float weight(int i, float) const {
    return i % 2 == 0 ? low_half<Type>(pairs[i / 2]) : high_half<Type>(pairs[i / 2]);
  }

  __device__ uint32_t signs(int half) const {
    uint32_t p[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      p[i] = without_negative_zero<Type>(pairs[4 * half + i]);
    }

    // Their high bytes: even elements in the low half, odd ones in the high half.
    uint32_t first = __byte_perm(p[0], p[1], 0x7351);
    uint32_t second = __byte_perm(p[2], p[3], 0x7351);
    return sign_nibbles(__byte_perm(first, second, 0x5410), __byte_perm(first, second, 0x7632));
  }
};

template <>
struct Block<F32> {
  static constexpr bool kNarrow = false;

  uint32_t bits[16];

  __device__ void load(const unsigned char *source, bool aligned) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint4 words = load16(source + 16 * i, aligned);
      bits[4 * i] = words.x, bits[4 * i + 1] = words.y, bits[4 * i + 2] = words.z, bits[4 * i + 3] = words.w;
    }
  }

  __device__ uint32_t largest() const {
    uint32_t max = 0;
#pragma unroll
    for (int i = 0; i < 16; i++) {
      max = ::max(max, bits[i] & 0x7fffffffu);
    }

    return max;
  }

  static __device__ float value(uint32_t largest, float) { return __uint_as_float(largest); }

  __device__ float weight(int i, float) const { return __uint_as_float(bits[i]); }
};

// A magnitude at bit 20 of a float, subnormals too, is 2^-120 times its value; in a bfloat16 it is at bit 4.
template <>
struct Block<E4m3> {
  static constexpr bool kNarrow = true;
  static constexpr float kUnit = 0x1p-120f;
  static constexpr int kFreeBits = 20;

  uint32_t words[4];

  __device__ void load(const unsigned char *source, bool aligned) {
    uint4 all = load16(source, aligned);
    words[0] = all.x, words[1] = all.y, words[2] = all.z, words[3] = all.w;
  }

  // Of bfloat16s: 0x7f0 is NaN.
  __device__ uint32_t largest() const {
    uint32_t max[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      max[i] = max_pair<Bf16>(words[i] << 4 & 0x07f007f0u, words[i] >> 4 & 0x07f007f0u);
    }

    uint32_t pair = max_pair<Bf16>(max_pair<Bf16>(max[0], max[1]), max_pair<Bf16>(max[2], max[3]));
    return max_pair<Bf16>(pair, pair >> 16) & 0xffff;
  }

  static __device__ float value(uint32_t largest, float scale) {
    float magnitude = __uint_as_float(largest << 16) * 0x1p120f;
    return fabsf((largest == 0x7f0 ? __uint_as_float(0x7fc00000) : magnitude) * scale);
  }

  __device__ float magnitude(int i) const {
    uint32_t word = words[i / 4];
    int shift = 20 - i % 4 * 8;
    return __uint_as_float((shift >= 0 ? word << shift : word >> -shift) & 0x07f00000u);
  }

  __device__ float weight(int i, float scale) const {
    uint32_t sign = words[i / 4] << (24 - i % 4 * 8) & 0x80000000u;
    float value = __uint_as_float(__float_as_uint(magnitude(i)) | sign);
    return value * 0x1p120f * scale;
  }

  __device__ uint32_t signs(int half) const {
    uint32_t p[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t word = words[2 * half + i];
      p[i] = word & ((word & 0x7f7f7f7fu) + 0x7f7f7f7fu);
    }

    return sign_nibbles(__byte_perm(p[0], p[1], 0x6420), __byte_perm(p[0], p[1], 0x7531));
  }
};

// INT4 and E2M1: a magnitude has few values, and their codes are looked up.
template <typename Type>
struct NibbleBlock {
  static constexpr bool kNarrow = false;

  uint32_t words[2];

  __device__ void load(const unsigned char *source, bool aligned) {
    uint2 all = load8(source, aligned);
    words[0] = all.x, words[1] = all.y;
  }

  __device__ float weight(int i, float scale) const {
    return nibble_value<Type>(words[i / 8] >> (i % 8 * 4) & 0xf) * scale;
  }
};

// The lower three bits of eight nibbles, as what the compiler does not mask anew wherever it is shifted.
__device__ __forceinline__ uint32_t low_bits(uint32_t nibbles) {
  nibbles &= 0x77777777u;
  asm("" : "+r"(nibbles));
  return nibbles;
}

// Eight nibbles, below 8, looked up in a table of bytes below 16.
__device__ __forceinline__ uint32_t look_up_eight(uint32_t nibbles, const uint32_t *table) {
  // By the product each code is twice in it; its odd bytes have one of either of two.
  constexpr uint32_t kTwice = 0x110;
  uint32_t low = permute(table[0], table[1], nibbles) * kTwice;
  uint32_t high = permute(table[0], table[1], nibbles >> 16) * kTwice;
  return permute(low, high, 0x7531);
}

// The larger of two pairs of 16 bits.
__device__ __forceinline__ uint32_t max_halves(uint32_t a, uint32_t b) {
#if __CUDA_ARCH__ >= 900
  return __vmaxu2(a, b);
#else
  return max(a & 0xffff0000u, b & 0xffff0000u) | max(a & 0xffff, b & 0xffff);
#endif
}

// The largest of three.
__device__ __forceinline__ uint32_t max_halves(uint32_t a, uint32_t b, uint32_t c) {
#if __CUDA_ARCH__ >= 900
  return __vimax3_u16x2(a, b, c);
#else
  return max_halves(max_halves(a, b), c);
#endif
}

// The largest nibble of two words is the highest one of either half of this: halves order by their highest nibbles.
__device__ __forceinline__ uint32_t largest_of_nibbles(uint32_t a, uint32_t b) {
  uint32_t max = max_halves(a, b);
#pragma unroll
  for (int i = 4; i < 16; i += 4) {
    max = max_halves(max, a << i, b << i);
  }

  return max;
}

__device__ __forceinline__ uint32_t largest_nibble(uint32_t a, uint32_t b) {
  uint32_t max = largest_of_nibbles(a, b);
  return max_halves(max, max << 16) >> 28;
}

template <>
struct Block<E2m1> : NibbleBlock<E2m1> {
  // A magnitude's code; apart, as largest_of_nibbles() has it.
  __device__ uint32_t largest() const { return largest_nibble(low_bits(words[0]), low_bits(words[1])); }
  __device__ uint32_t largest_of_codes() const { return largest_of_nibbles(low_bits(words[0]), low_bits(words[1])); }

  static __device__ float value(uint32_t largest, float scale) {
    return fabsf(nibble_value<E2m1>(largest) * scale);
  }

  static constexpr int kMagnitudes = 7;  // besides zero

  static __device__ float nth(int i) { return e2m1_magnitude(i); }

  // codes[i] for magnitude i, a byte each.
  __device__ uint32_t look_up(int half, const uint32_t *codes) const {
    uint32_t word = words[half];
    uint32_t magnitudes = low_bits(word);
    return look_up_eight(magnitudes, codes) | (word & (magnitudes + 0x77777777u) & 0x88888888u);
  }
};

template <>
struct Block<Int4> : NibbleBlock<Int4> {
  // A magnitude.
  __device__ uint32_t largest() const {
    // Nibbles are values plus 8. Twice the magnitude, less one of those below zero, orders as magnitudes do.
    uint32_t twice[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      uint32_t below = ~words[i] >> 3 & 0x11111111u;
      twice[i] = ((words[i] & 0x77777777u) ^ below * 7) * 2 + below;
    }

    return (largest_nibble(twice[0], twice[1]) + 1) >> 1;
  }

  static __device__ float value(uint32_t largest, float scale) {
    return fabsf(static_cast<float>(largest) * scale);
  }

  static constexpr int kMagnitudes = 8;

  static __device__ float nth(int i) { return static_cast<float>(i); }

  __device__ uint32_t look_up(int half, const uint32_t *codes) const {
    uint32_t word = words[half];
    uint32_t low = low_bits(word);
    // Nibbles 0 to 7 are -8 to -1, 8 to 15 are 0 to 7.
    uint32_t below[2] = {__byte_perm(codes[1], codes[2], 0x1234) | 0x08080808u,
                         __byte_perm(codes[0], codes[1], 0x1234) | 0x08080808u};
    uint32_t mask = (word >> 3 & 0x11111111u) * 0xf;
    return (look_up_eight(low, codes) & mask) | (look_up_eight(low, below) & ~mask);
  }
};

}  // namespace sparkfp4::cuda
