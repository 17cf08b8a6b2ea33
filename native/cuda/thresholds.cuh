// E2M1 codes of E4M3 elements as how many of seven bytes are no larger than an element's magnitude.
//
// Under a source scale and d the code of an element is a matter of its magnitude's byte alone. The seven bytes depend on
// d, and on its exponent only by so many times eight, for nothing rounds otherwise when source scale, d and a weight
// change by powers of two. They are found by true quotients, and so right whatever quotients tie; and four magnitudes
// are held against one by one addition, which carries into the highest bit of each byte.
#pragma once

#include "blocks.cuh"
#include "rounding.cuh"

namespace sparkfp4::cuda {

constexpr uint32_t kEachByte = 0x01010101u;
constexpr int kCodeBias = 7;         // of E4M3's exponent, which has eight codes
constexpr int kOne = 8 * kCodeBias;  // the code of 1

// Thresholds of a mantissa of d, seen from the first of seven, in bytes: that one plus kEntryBias where d has exponent
// 0; how far behind it the second, third and fourth lie. The others are these eight or sixteen further on.
constexpr int kEntryBias = 64;
constexpr int kMostEntry = 255;      // beyond all that may be

// The first threshold of a block may be from 8, for subnormals have other distances, to 92: no other is more than 36
// behind it, and they end at 128.
constexpr uint32_t kLeastFirst = 8;
constexpr uint32_t kMostFirst = 92;

// The least code, of a format like E4M3 without subnormals, whose quotient passes the midpoint.
__device__ __forceinline__ int threshold(float midpoint, bool tie_passes, float source_scale, float d, float inverse) {
  float near = midpoint * d * approximate_reciprocal(source_scale);
  int code = static_cast<int>(__float_as_uint(near) >> 20) - ((127 - kCodeBias) << 3);
  int first = code;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float magnitude = __uint_as_float(static_cast<uint32_t>(code + i + ((127 - kCodeBias) << 3)) << 20);
    float quotient = divide(__fmul_rn(magnitude, source_scale), d, inverse);
    first += tie_passes ? quotient < midpoint : quotient <= midpoint;
  }

  return first;
}

// The entry of d = rule.factor() of a scale from 1 to below 2, for ordinary ones and source scales.
__device__ __forceinline__ uint32_t find_thresholds(float source_scale, float d) {
  float inverse = __frcp_rn(d);
  int first = threshold(0.25f, false, source_scale, d, inverse);
  int second = threshold(0.75f, true, source_scale, d, inverse);
  int third = threshold(1.25f, false, source_scale, d, inverse);
  int fourth = threshold(1.75f, true, source_scale, d, inverse);
  return static_cast<uint32_t>(min(max(first + kEntryBias, 0), kMostEntry)) |
         static_cast<uint32_t>(second - first) << 8 | static_cast<uint32_t>(third - first) << 16 |
         static_cast<uint32_t>(fourth - first) << 24;
}

// What is added to magnitudes: 128 less a threshold, in each byte.
class Thresholds {
 public:
  // Of a block's scale, by its byte.
  __device__ __forceinline__ Thresholds(uint32_t entry, uint32_t byte)
      : entry_(entry), distance_(128 + kOne + kEntryBias - (byte & 0x78) - (entry & 0xff)) {}

  __device__ __forceinline__ bool serve() const {
    return 128 - kLeastFirst - distance_ <= kMostFirst - kLeastFirst;
  }

  __device__ __forceinline__ uint2 encode(const Block<E4m3> &block) const {
    uint32_t of[7];
    of[0] = distance_ * kEachByte;
    of[1] = of[0] - __byte_perm(entry_, 0, 0x1111);
    of[2] = of[0] - __byte_perm(entry_, 0, 0x2222);
    of[3] = of[0] - __byte_perm(entry_, 0, 0x3333);
    of[4] = of[2] - 8 * kEachByte;
    of[5] = of[3] - 8 * kEachByte;
    of[6] = of[2] - 16 * kEachByte;
    return make_uint2(encode_eight(of, block, 0), encode_eight(of, block, 1));
  }

 private:
  // The E2M1 codes of four elements in the high halves of bytes; the low ones are undefined.
  static __device__ __forceinline__ uint32_t encode_four(const uint32_t *of, uint32_t codes) {
    uint32_t magnitudes = codes & 0x7f * kEachByte;
    // Whether thresholds are passed, in bit 7; a threshold is passed only if those before it are.
    uint32_t passed[7];
#pragma unroll
    for (int i = 0; i < 7; i++) {
      passed[i] = magnitudes + of[i];
    }

    uint32_t odd = passed[0] ^ passed[1] ^ passed[2] ^ passed[3] ^ passed[4] ^ passed[5] ^ passed[6];
    uint32_t two = (passed[1] & ~passed[3]) | passed[5];
    uint32_t below = codes & (magnitudes + 0x7f * kEachByte);
    return (below & 0x80 * kEachByte) | (passed[3] >> 1 & 0x40 * kEachByte) | (two >> 2 & 0x20 * kEachByte) |
           (odd >> 3 & 0x10 * kEachByte);
  }

  static __device__ __forceinline__ uint32_t encode_eight(const uint32_t *of, const Block<E4m3> &block, int half) {
    uint32_t first = block.words[2 * half];
    uint32_t last = block.words[2 * half + 1];
    uint32_t even = encode_four(of, __byte_perm(first, last, 0x6420));
    uint32_t odd = encode_four(of, __byte_perm(first, last, 0x7531));
    return (even >> 4 & 0x0f * kEachByte) | (odd & 0xf0 * kEachByte);
  }

  uint32_t entry_;
  uint32_t distance_;
};

}  // namespace sparkfp4::cuda
