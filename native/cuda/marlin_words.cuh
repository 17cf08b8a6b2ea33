// Four E4M3 scales at once to and from the bytes that vLLM's Marlin takes: what MarlinScale has as tables, which
// threads would look up byte by byte.
#pragma once

#include "../src/marlin_scale.h"
#include "permute.cuh"

namespace sparkfp4::cuda {

// What depends on the factor, in all four bytes of a word. With a base that is eight less than the byte of 2^-6, a
// normal scale becomes its own code and the base, and the seven subnormal ones are spread below, from base - 16 on.
struct MarlinWords {
  uint32_t base;
  uint32_t subnormals[2];  // what codes 0 to 3, and 4 to 7, become
  uint32_t past_limit;     // 127 less the largest code
  uint32_t lowest;         // base - 16 without its highest bit, which
  uint32_t lowest_sign;    // is here
  uint32_t past_last;      // 127 less the largest byte above base - 16 without its highest bit, which
  uint32_t last_sign;      // is here, as 0 or 0xff
  uint32_t to_normal;      // what the low bits of a normal scale's byte and this reach 128 by
  uint32_t past_normal;    // and what they do not reach it by
};

inline MarlinWords marlin_words(const MarlinScale &scale) {
  auto all = [](int byte) { return static_cast<uint32_t>(byte & 0xff) * 0x01010101u; };
  auto four = [](const unsigned char *bytes) {
    return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
  };
  int lowest = scale.base() - 16;
  int last = scale.encoded()[scale.limit()] - lowest;
  int first_normal = scale.base() + 8;  // past all bytes where there are no normal scales
  return {all(scale.base()),
          {four(scale.encoded()), four(scale.encoded() + 4)},
          all(0x7f - scale.limit()),
          all(lowest & 0x7f),
          all(lowest & 0x80),
          all(0x7f - (last & 0x7f)),
          all(last >= 128 ? 0xff : 0),
          all(first_normal < 256 ? 256 - first_normal : 0),
          all(0x7f - (scale.encoded()[scale.limit()] & 0x7f))};
}

constexpr uint32_t kHighBits = 0x80808080u;

// Bytes of ones where the highest bit is set, else of zeros.
__device__ __forceinline__ uint32_t spread(uint32_t word) { return permute(word, 0, 0xba98); }

// Selects of a table the four bytes whose numbers are in the low three bits of each byte.
__device__ __forceinline__ uint32_t looked_up(uint32_t low, uint32_t high, uint32_t numbers) {
  numbers &= 0x07070707u;
  return permute(low, high, permute(numbers | numbers >> 4, 0, 0x4420));
}

// What is no scale becomes 0xff.
__device__ __forceinline__ uint32_t encoded_any(const MarlinWords &words, uint32_t codes) {
  uint32_t magnitudes = codes & ~kHighBits;
  uint32_t normal = spread((codes & 0x78787878u) + 0x78787878u);
  uint32_t beyond = spread((magnitudes + words.past_limit) | codes);
  uint32_t bytes = (magnitudes & normal & ~beyond) + (words.base & normal & ~beyond);
  bytes |= looked_up(words.subnormals[0], words.subnormals[1], codes) & ~normal;
  return bytes | beyond;
}

// What no scale becomes is 0x7f.
__device__ __forceinline__ uint32_t decoded_any(const MarlinWords &words, uint32_t bytes) {
  // bytes less base - 16, each modulo 256: those that are less, and 0, come out past the last
  uint32_t above = ((bytes | kHighBits) - words.lowest) ^ (~(bytes ^ words.lowest_sign) & kHighBits);
  uint32_t low = above & ~kHighBits;
  uint32_t past = low + words.past_last;
  uint32_t beyond = spread((past & above) | (~words.last_sign & (past | above)));
  // from 24 on it is 16 more than the code
  uint32_t normal = spread((low + 0x68686868u) | above);
  uint32_t codes = (above & normal) - (0x10101010u & normal);
  // below, codes 1 to 7 are at 0, 8, 12, 16, 18, 20 and 22
  uint32_t halves = above >> 1 & 0x7f7f7f7fu;
  uint32_t subnormal = looked_up(0x7f7f7f01u, 0x7f037f02u, halves);
  uint32_t upper = spread(above << 3);
  subnormal = (looked_up(0x07060504u, 0x7f7f7f7fu, halves) & upper) | (subnormal & ~upper);
  codes |= subnormal & ~normal;
  uint32_t odd = spread(above << 7) & ~normal;
  uint32_t zero = ~spread(((bytes & ~kHighBits) + 0x7f7f7f7fu) | bytes);
  return (codes | beyond | odd) & 0x7f7f7f7fu & ~zero;
}

// Words in their place. Scales are mostly normal, and then it is a sum.
template <int kCount>
__device__ __forceinline__ void encode_words(const MarlinWords &words, uint32_t *scales) {
  uint32_t normal = kHighBits;
#pragma unroll
  for (int i = 0; i < kCount; i++) {
    uint32_t low = scales[i] & ~kHighBits;
    normal &= (low + 0x78787878u) & ~(low + words.past_limit) & ~scales[i];
  }

  if (normal == kHighBits) {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      scales[i] += words.base;
    }

    return;
  }

#pragma unroll
  for (int i = 0; i < kCount; i++) {
    scales[i] = encoded_any(words, scales[i]);
  }
}

template <int kCount>
__device__ __forceinline__ void decode_words(const MarlinWords &words, uint32_t *bytes) {
  uint32_t normal = kHighBits;
#pragma unroll
  for (int i = 0; i < kCount; i++) {
    uint32_t low = bytes[i] & ~kHighBits;
    normal &= (low + words.to_normal) & ~(low + words.past_normal) & bytes[i];
  }

  if (normal == kHighBits) {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      bytes[i] -= words.base;
    }

    return;
  }

#pragma unroll
  for (int i = 0; i < kCount; i++) {
    bytes[i] = decoded_any(words, bytes[i]);
  }
}

}  // namespace sparkfp4::cuda
