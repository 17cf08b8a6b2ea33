// Rows by threads that each have eight consecutive elements of a block, in words of 16 bytes: four of the lanes whose
// sums sparkfp4_keys.h defines. What such threads exchange, and the E2M1 codes of what they have.
#pragma once

#include "keys.cuh"

namespace sparkfp4::cuda {

constexpr int kEight = 8;
constexpr int kWordBytes = 16;

// Eight elements as they are in memory: one word of 16 bytes, or two.
template <typename Type>
struct Eight {
  static constexpr int kWords = sizeof(typename Type::Bits) / 2;
  uint4 words[kWords];

  __device__ __forceinline__ void load(const unsigned char *source) {
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      words[i] = reinterpret_cast<const uint4 *>(source)[i];
    }
  }

  __device__ __forceinline__ void values(float *x) const {
#pragma unroll
    for (int i = 0; i < kWords; i++) {
      const uint32_t bits[] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
      for (int j = 0; j < 4; j++) {
        if constexpr (kWords == 1) {
          x[2 * j] = low_half<Type>(bits[j]);
          x[2 * j + 1] = high_half<Type>(bits[j]);
        } else {
          x[4 * i + j] = __uint_as_float(bits[j]);
        }
      }
    }
  }
};

// 1 in each half that is not zero.
__device__ __forceinline__ uint32_t any_bits(uint32_t halves) {
#if __CUDA_ARCH__ >= 900
  uint32_t any;
  asm("min.u16x2 %0, %1, %2;" : "=r"(any) : "r"(halves), "r"(0x00010001u));
  return any;
#else
  return (halves | ((halves & 0x7fff7fffu) + 0x7fff7fffu)) >> 15 & 0x00010001u;
#endif
}

// Eight elements, in pairs, as bfloat16: their magnitudes; and their signs, as the highest bits of words of whatever
// else.
struct EightPairs {
  uint32_t magnitudes[kEight / 2];
  uint32_t signs[kEight / 2];

  __device__ __forceinline__ void set(const uint4 &word) {
    signs[0] = word.x, signs[1] = word.y, signs[2] = word.z, signs[3] = word.w;
#pragma unroll
    for (int i = 0; i < kEight / 2; i++) {
      magnitudes[i] = signs[i] & 0x7fff7fffu;
    }
  }

  // Rounded to odd: cut off, and the last bit set where anything was cut off. What is then compared with numbers of
  // less than eight bits, or rounded to such, comes out as if nothing had been cut off; infinity and NaN stay what they
  // are.
  __device__ __forceinline__ void set(const float *x) {
#pragma unroll
    for (int i = 0; i < kEight / 2; i++) {
      uint32_t even = __float_as_uint(x[2 * i]);
      uint32_t odd = __float_as_uint(x[2 * i + 1]);
      signs[i] = __byte_perm(even, odd, 0x7632);
      magnitudes[i] = (signs[i] | any_bits(__byte_perm(even, odd, 0x5410))) & 0x7fff7fffu;
    }
  }

  __device__ __forceinline__ uint32_t largest() const {
    return max_pair<Bf16>(max_pair<Bf16>(magnitudes[0], magnitudes[1]), max_pair<Bf16>(magnitudes[2], magnitudes[3]));
  }
};

// 2^(127 - u) as a pair of bfloat16.
__device__ __forceinline__ uint32_t inverse_pair(uint32_t u) { return (254 - u) * 0x00800080u; }

__device__ __forceinline__ uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}

__device__ __forceinline__ uint32_t min_pair(uint32_t a, uint32_t b) {
  uint32_t min;
  asm("min.bf16x2 %0, %1, %2;" : "=r"(min) : "r"(a), "r"(b));
  return min;
}

// The E2M1 codes of eight elements y / scale, with their signs; they are exact or rounded to odd. A code is
// f(y) = min(2 y, y + 2, y / 2 + 4), 7 at most, rounded to an integer, which a sum with 128 does in bfloat16; rounding
// is monotonic, so the least of the rounded lines does. kCeil: by that rule, u is 1 to 253 and y not above 6.
template <bool kCeil>
__device__ __forceinline__ uint32_t codes_of_eight(const EightPairs &pairs, uint32_t inverse) {
  constexpr uint32_t kMagic = 0x43004300;  // 128
  constexpr uint32_t kOne = 0x00010001;    // its last place
  constexpr uint32_t kBinade = 0x00800080;
  // By which each line multiplies: y is scaled before where 2^(128 - u) is not to be had.
  uint32_t twice = kCeil ? inverse + kBinade : 0x40004000;
  uint32_t once = kCeil ? inverse : 0x3f803f80;
  uint32_t half = kCeil ? max(inverse - kBinade, 0x00400040u) : 0x3f003f00;  // of u = 253 it is subnormal
  uint32_t codes[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t y = kCeil ? pairs.magnitudes[i] : fma_pair(pairs.magnitudes[i], inverse, 0);
    uint32_t code = min_pair(fma_pair(y, twice, kMagic), fma_pair(y, once, kMagic + 2 * kOne));
    code = min_pair(code, fma_pair(y, half, kMagic + 4 * kOne));
    codes[i] = kCeil ? code : min_pair(code, kMagic + 7 * kOne);
  }

  // Codes are in the low bytes, signs in the high ones; even elements come from the low halves.
  uint32_t first = __byte_perm(codes[0], codes[1], 0x6240);
  uint32_t last = __byte_perm(codes[2], codes[3], 0x6240);
  uint32_t magnitudes = __byte_perm(first, last, 0x5410) + (__byte_perm(first, last, 0x7632) << 4);
  first = __byte_perm(pairs.signs[0], pairs.signs[1], 0x7351);
  last = __byte_perm(pairs.signs[2], pairs.signs[3], 0x7351);
  return magnitudes | sign_nibbles(__byte_perm(first, last, 0x5410), __byte_perm(first, last, 0x7632));
}

// The largest magnitude of a block, as bits of binary32.
__device__ __forceinline__ uint32_t block_amax(const EightPairs *block) {
  uint32_t both = max_pair<Bf16>(max_pair<Bf16>(block[0].largest(), block[1].largest()),
                                 max_pair<Bf16>(block[2].largest(), block[3].largest()));
  return max(both << 16, both & 0xffff0000u);
}

// The codes of a block whose scale is u.
template <bool kCeil>
__device__ __forceinline__ uint4 codes_of_block(const EightPairs *block, uint32_t u) {
  uint32_t inverse = inverse_pair(u);
  return make_uint4(codes_of_eight<kCeil>(block[0], inverse), codes_of_eight<kCeil>(block[1], inverse),
                    codes_of_eight<kCeil>(block[2], inverse), codes_of_eight<kCeil>(block[3], inverse));
}

// Squares of what eight elements lose by the scale that inverse is of, and by the next, summed by pairs: y less its E2M1
// value, and the same of y / 2 in units of y. E2M1 values of a binade are its power of two by halves, so that a sum with
// so much of it that halves are its last place rounds; below 1 it is 1.
__device__ __forceinline__ void square_errors(const float *x, float inverse, float *errors, float *errors_of_next) {
  constexpr float kMagic = 0x1.8p22f;
#pragma unroll
  for (int l = 0; l < kEight / 2; l++) {
    Pair error;
    Pair error_of_next;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float y = __fmul_rn(fabsf(x[2 * l + i]), inverse);
      float power = fmaxf(__uint_as_float(__float_as_uint(y) & kInfinityBits), 1.0f);
      float sum = __fmaf_rn(power, kMagic, fminf(y, 6.0f));
      float e = __fsub_rn(y, __fmaf_rn(power, -kMagic, sum));
      power = fmaxf(power, 2.0f);
      sum = __fmaf_rn(power, kMagic, y);
      float next = __fsub_rn(y, __fmaf_rn(power, -kMagic, sum));
      (i == 0 ? error.even : error.odd) = e;
      (i == 0 ? error_of_next.even : error_of_next.odd) = next;
    }

    errors[l] = pair_squares(error);
    errors_of_next[l] = pair_squares(error_of_next);
  }
}

// Thread i of the four that are kDistance apart has words 0 to 3; it gets word i of each, in their order.
template <int kDistance, typename Word>
__device__ __forceinline__ void transpose_four(Word *words) {
  bool upper = threadIdx.x & 2 * kDistance;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    Word other = from_partner(upper ? words[i] : words[i + 2], 2 * kDistance);
    words[i] = upper ? other : words[i];
    words[i + 2] = upper ? words[i + 2] : other;
  }

  upper = threadIdx.x & kDistance;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    Word other = from_partner(upper ? words[i] : words[i + 1], kDistance);
    words[i] = upper ? other : words[i];
    words[i + 1] = upper ? words[i + 1] : other;
  }
}

}  // namespace sparkfp4::cuda
