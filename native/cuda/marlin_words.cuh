// Four E4M3 scales at once to and from the bytes that vLLM's Marlin kernels read: what MarlinScale of layout_blocks.h
// has as tables, which a multiprocessor would look up byte by byte.
#pragma once

#include <cstdint>

namespace sparkfp4::cuda {

// What depends on the factor, in all four bytes of a word. With a base that is eight less than the byte of 2^-6, a normal
// scale becomes its own code and the base, and the seven subnormal ones are spread below, from base - 16 on.
struct MarlinWords {
  uint32_t base;
  uint32_t subnormals[2];  // what codes 0 to 3, and 4 to 7, become
  uint32_t past_limit;     // 127 less the largest code
  uint32_t lowest;         // base - 16 without its highest bit, which
  uint32_t lowest_sign;    // is here
  uint32_t past_last;      // 127 less the largest byte above base - 16 without its highest bit, which
  uint32_t last_sign;      // is here, as 0 or 0xff
};

inline MarlinWords marlin_words(int exponent) {
  auto bytes = [](int byte) { return static_cast<uint32_t>(byte & 0xff) * 0x01010101u; };
  int base = (15 + exponent) * 8;
  int limit = exponent <= 14 ? 0x7e - 8 * exponent : 7 >> (exponent - 15);
  int lowest = base - 16;
  int last = limit >= 8 ? limit + 16 : limit >= 4 ? 16 + 2 * (limit - 4) : limit >= 2 ? 8 + 4 * (limit - 2) : 0;
  MarlinWords words;
  words.base = bytes(base);
  words.subnormals[0] = static_cast<uint32_t>(base - 16) << 8 | static_cast<uint32_t>(base - 8) << 16 |
                        static_cast<uint32_t>(base - 4) << 24;
  words.subnormals[1] = static_cast<uint32_t>(base & 0xff) | static_cast<uint32_t>((base + 2) & 0xff) << 8 |
                        static_cast<uint32_t>((base + 4) & 0xff) << 16 | static_cast<uint32_t>((base + 6) & 0xff) << 24;
  words.past_limit = bytes(0x7f - limit);
  words.lowest = bytes(lowest & 0x7f);
  words.lowest_sign = bytes(lowest & 0x80);
  words.past_last = bytes(0x7f - (last & 0x7f));
  words.last_sign = bytes(last >= 128 ? 0xff : 0);
  return words;
}

constexpr uint32_t kHighBits = 0x80808080u;

// Bytes of ones where the highest bit is set, else of zeros.
__device__ __forceinline__ uint32_t spread(uint32_t word) { return __byte_perm(word, 0, 0xba98); }

// Selects of a table the four bytes whose numbers are in the low three bits of each byte.
__device__ __forceinline__ uint32_t looked_up(uint32_t low, uint32_t high, uint32_t numbers) {
  numbers &= 0x07070707u;
  return __byte_perm(low, high, __byte_perm(numbers | numbers >> 4, 0, 0x4420));
}

// What is no scale becomes 0xff.
__device__ __forceinline__ uint32_t encoded_word(const MarlinWords &words, uint32_t codes) {
  uint32_t magnitudes = codes & ~kHighBits;
  uint32_t normal = spread((codes & 0x78787878u) + 0x78787878u);
  uint32_t beyond = spread((magnitudes + words.past_limit) | codes);
  uint32_t bytes = (magnitudes & normal & ~beyond) + (words.base & normal & ~beyond);
  bytes |= looked_up(words.subnormals[0], words.subnormals[1], codes) & ~normal;
  return bytes | beyond;
}

// What no scale becomes is 0x7f.
__device__ __forceinline__ uint32_t decoded_word(const MarlinWords &words, uint32_t bytes) {
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
  uint32_t zero = ~spread((bytes & ~kHighBits) + 0x7f7f7f7fu | bytes);
  return (codes | beyond | odd) & 0x7f7f7f7fu & ~zero;
}

}  // namespace sparkfp4::cuda
