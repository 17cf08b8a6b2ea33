// Vectors of SPARKFP4_WIDTH lanes in the compiler's own notation, of which it makes the instructions that a file is
// compiled for. A block of 32 elements is sixteen pairs: vectors of the even elements and of the odd ones.
//
// All is in an anonymous namespace: tiers are compiled for different instruction sets, and a shared definition would
// leave the choice of instructions to the linker.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "arithmetic.h"

#define SPARKFP4_KEY_OP __attribute__((always_inline)) static inline

namespace sparkfp4 {
namespace {

constexpr int kWidth = SPARKFP4_WIDTH;
constexpr int kParts = 16 / kWidth;

typedef float Float __attribute__((vector_size(4 * kWidth)));
typedef uint32_t Word __attribute__((vector_size(4 * kWidth)));
typedef int32_t Int __attribute__((vector_size(4 * kWidth)));
typedef uint8_t Bytes __attribute__((vector_size(kWidth)));
typedef uint16_t Halves __attribute__((vector_size(2 * kWidth)));

constexpr uint32_t kMagnitudeBits = 0x7fffffff;
constexpr uint32_t kInfinityBits = 0x7f800000;

struct Block {
  Float even[kParts];
  Float odd[kParts];
};

#define SPARKFP4_EACH_PART _Pragma("GCC unroll 4") for (int part = 0; part < kParts; part++)

template <typename To, typename From>
SPARKFP4_KEY_OP To as(From from) {
  return reinterpret_cast<To>(from);
}

SPARKFP4_KEY_OP Float all(float x) { return x - Float{}; }
SPARKFP4_KEY_OP Word all_words(uint32_t x) { return x | Word{}; }

template <typename Vector>
SPARKFP4_KEY_OP Vector load_vector(const unsigned char *from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <typename Vector>
SPARKFP4_KEY_OP void store_vector(unsigned char *to, Vector vector) {
  std::memcpy(to, &vector, sizeof vector);
}

// Lanes below 2^8 to bytes, lanes below 2^16 to words. GCC takes eight lanes apart for it.
SPARKFP4_KEY_OP Bytes to_bytes(Word x) {
#if defined(__AVX2__) && SPARKFP4_WIDTH == 8
  __m256i words = _mm256_packus_epi32(as<__m256i>(x), as<__m256i>(x));
  __m256i bytes = _mm256_packus_epi16(words, words);
  return as<Bytes>(_mm_cvtsi128_si64(
      _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1))));
#else
  return __builtin_convertvector(x, Bytes);
#endif
}

SPARKFP4_KEY_OP Halves to_halves(Word x) {
#if defined(__AVX2__) && SPARKFP4_WIDTH == 8
  __m256i words = _mm256_packus_epi32(as<__m256i>(x), as<__m256i>(x));
  return as<Halves>(_mm256_castsi256_si128(_mm256_permute4x64_epi64(words, 0xd8)));
#else
  return __builtin_convertvector(x, Halves);
#endif
}

// The first four lanes, below 2^8. GCC takes sixteen lanes apart where it knows that the others are of no use.
SPARKFP4_KEY_OP uint32_t first_four(Word x) {
#if defined(__AVX512F__) && SPARKFP4_WIDTH == 16
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm512_cvtepi32_epi8(as<__m512i>(x))));
#else
  Bytes bytes = to_bytes(x);
  uint32_t four;
  std::memcpy(&four, &bytes, sizeof four);
  return four;
#endif
}

// One vector of a and b by indices, those of b from kWidth on.
template <typename Vector>
SPARKFP4_KEY_OP Vector shuffle(Vector a, Vector b, Int index) {
#ifdef __clang__
  Vector shuffled = a;
  for (int i = 0; i < kWidth; i++) {
    shuffled[i] = index[i] < kWidth ? a[index[i] & (kWidth - 1)] : b[index[i] & (kWidth - 1)];
  }

  return shuffled;
#else
  return __builtin_shuffle(a, b, index);
#endif
}

#if SPARKFP4_WIDTH == 16
#define SPARKFP4_LANES(of) \
  Int { of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7), of(8), of(9), of(10), of(11), of(12), of(13), of(14), \
        of(15) }
#elif SPARKFP4_WIDTH == 8
#define SPARKFP4_LANES(of) Int { of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7) }
#else
#define SPARKFP4_LANES(of) Int { of(0), of(1), of(2), of(3) }
#endif

template <int kStep, int kFirst>
constexpr int strided(int lane) {
  return lane * kStep + kFirst;
}

template <int kHalf>
constexpr int rotated(int lane) {
  return (lane + kHalf) % kWidth;
}

template <int kHalf>
constexpr int partner(int lane) {
  return lane ^ kHalf;
}

template <int kHalf>
constexpr int sign_of(int lane) {
  return lane & kHalf ? static_cast<int>(0x80000000u) : 0;
}

// Lane by lane: a's first kWidth / 2 lanes between b's, and so on.
constexpr int interleaved_low(int lane) { return lane / 2 + (lane % 2) * kWidth; }
constexpr int interleaved_high(int lane) { return interleaved_low(lane) + kWidth / 2; }

// Lanes of a, then of b: the even quarters of both, or the odd ones, or their halves.
template <int kParity>
constexpr int half_of(int lane) {
  return lane < kWidth / 2 ? lane + kParity * kWidth / 2 : lane + kWidth / 2 + kParity * kWidth / 2;
}

template <int kParity>
constexpr int quarter_of(int lane) {
  return (lane / (kWidth / 4) * 2 + kParity) * (kWidth / 4) + lane % (kWidth / 4);
}

template <int kQuarter>
constexpr int first_of_quarter(int) {
  return kQuarter * (kWidth / 4);
}

constexpr int quarter_firsts(int lane) { return lane % 4 * (kWidth / 4); }

struct Add {
  template <typename Vector>
  SPARKFP4_KEY_OP Vector of(Vector a, Vector b) {
    return a + b;
  }
};

struct Max {
  SPARKFP4_KEY_OP Word of(Word a, Word b) { return a > b ? a : b; }
};

// The tree over a vector's lanes: l with l + kHalf and so on.
template <typename Operation, int kHalf, typename Vector>
SPARKFP4_KEY_OP Vector fold(Vector x) {
  if constexpr (kHalf == 0) {
    return x;
  } else {
    return fold<Operation, kHalf / 2>(Operation::of(x, shuffle(x, x, SPARKFP4_LANES(rotated<kHalf>))));
  }
}

// The largest of each quarter to all its lanes.
template <int kHalf>
SPARKFP4_KEY_OP Word fold_quarters(Word x) {
  if constexpr (kHalf == 0) {
    return x;
  } else {
    return fold_quarters<kHalf / 2>(Max::of(x, shuffle(x, x, SPARKFP4_LANES(partner<kHalf>))));
  }
}

// The first steps of the tree over sixteen lanes, between vectors.
template <typename Operation, typename Vector>
SPARKFP4_KEY_OP Vector fold_parts(const Vector *lanes) {
  Vector x[kParts];
  SPARKFP4_EACH_PART { x[part] = lanes[part]; }
#pragma GCC unroll 2
  for (int half = kParts / 2; half > 0; half /= 2) {
#pragma GCC unroll 2
    for (int part = 0; part < half; part++) {
      x[part] = Operation::of(x[part], x[part + half]);
    }
  }

  return x[0];
}

// The tree over sixteen lanes: l with l + 8, l + 4, l + 2, l + 1.
template <typename Operation, typename Vector>
SPARKFP4_KEY_OP auto tree(const Vector *lanes) {
  return fold<Operation, kWidth / 2>(fold_parts<Operation>(lanes))[0];
}

// The lower and upper halves of 2 kHalf lanes of a, then of b.
template <int kHalf, int kUpper>
constexpr int halves_of(int lane) {
  int group = lane / kHalf;
  int first = group % (kWidth / (2 * kHalf)) * 2 * kHalf + lane % kHalf + kUpper * kHalf;
  return group < kWidth / (2 * kHalf) ? first : first + kWidth;
}

// The tree over the lanes of kWidth vectors at once: lane i of the result is that of vector i.
template <int kHalf>
SPARKFP4_KEY_OP Float sums_of_lanes(Float *x) {
  if constexpr (kHalf == 0) {
    return x[0];
  } else {
    auto lower = SPARKFP4_LANES((halves_of<kHalf, 0>));
    auto upper = SPARKFP4_LANES((halves_of<kHalf, 1>));
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; i++) {
      x[i] = shuffle(x[2 * i], x[2 * i + 1], lower) + shuffle(x[2 * i], x[2 * i + 1], upper);
    }

    return sums_of_lanes<kHalf / 2>(x);
  }
}

SPARKFP4_KEY_OP Float widen_half(Word half) {
  Word magnitude = (half & 0x7fff) << 13;
  Word finite = as<Word>(as<Float>(magnitude) * 0x1p112f);
  Word bits = (half & 0x7fff) < F16::kInfinity ? finite : magnitude | kInfinityBits;
  return as<Float>(bits | (half & 0x8000) << 16);
}

// A block whose first element is at source.
template <typename Type>
SPARKFP4_KEY_OP Block load_block(const unsigned char *source) {
  Block block;
  SPARKFP4_EACH_PART {
    if constexpr (sizeof(typename Type::Bits) == 4) {
      Float first = load_vector<Float>(source + 8 * kWidth * part);
      Float second = load_vector<Float>(source + 8 * kWidth * part + 4 * kWidth);
      auto even = SPARKFP4_LANES((strided<2, 0>));
      auto odd = SPARKFP4_LANES((strided<2, 1>));
      block.even[part] = shuffle(first, second, even);
      block.odd[part] = shuffle(first, second, odd);
    } else {
      Word pairs = load_vector<Word>(source + 4 * kWidth * part);
      if constexpr (Type::kSource == Bf16::kSource) {
        block.even[part] = as<Float>(pairs << 16);
        block.odd[part] = as<Float>(pairs & 0xffff0000);
      } else {
        block.even[part] = widen_half(pairs & 0xffff);
        block.odd[part] = widen_half(pairs >> 16);
      }
    }
  }

  return block;
}

SPARKFP4_KEY_OP Word magnitudes(Float x) { return as<Word>(x) & kMagnitudeBits; }

// The largest magnitude as bits, which a NaN and an infinity exceed all others by.
SPARKFP4_KEY_OP uint32_t largest_magnitude(const Block &block) {
  Word lanes[kParts];
  SPARKFP4_EACH_PART { lanes[part] = Max::of(magnitudes(block.even[part]), magnitudes(block.odd[part])); }
  return tree<Max>(lanes);
}

// The largest magnitude of each of a block's lanes.
SPARKFP4_KEY_OP Word largest_of_lanes(const Block &block) {
  Word largest = {};
  SPARKFP4_EACH_PART {
    largest = Max::of(largest, Max::of(magnitudes(block.even[part]), magnitudes(block.odd[part])));
  }

  return largest;
}

// The largest of four blocks' lanes: all lanes of quarter i have that of block i.
SPARKFP4_KEY_OP Word fold_four(const Word *lanes) {
  auto low = SPARKFP4_LANES(half_of<0>);
  auto high = SPARKFP4_LANES(half_of<1>);
  Word first = Max::of(shuffle(lanes[0], lanes[1], low), shuffle(lanes[0], lanes[1], high));
  Word second = Max::of(shuffle(lanes[2], lanes[3], low), shuffle(lanes[2], lanes[3], high));
  auto even = SPARKFP4_LANES(quarter_of<0>);
  auto odd = SPARKFP4_LANES(quarter_of<1>);
  return fold_quarters<kWidth / 8>(Max::of(shuffle(first, second, even), shuffle(first, second, odd)));
}

// To bfloat16, nearest even; NaN stays NaN.
SPARKFP4_KEY_OP Float round_bf16(Float x) {
  Word bits = as<Word>(x);
  Word rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  return as<Float>((bits & kMagnitudeBits) > kInfinityBits ? bits : rounded);
}

SPARKFP4_KEY_OP void round_bf16(Block *block) {
  SPARKFP4_EACH_PART {
    block->even[part] = round_bf16(block->even[part]);
    block->odd[part] = round_bf16(block->odd[part]);
  }
}

// Magnitudes, not above the format's largest, to the codes of a binary format with so many mantissa bits and this
// exponent of its smallest normal value, nearest even; *value gets what the codes stand for.
//
// The spacing of the format's values is constant within a binade: adding 2^23 spacings rounds, and leaves their count
// in the low bits of the sum.
template <int kMantissaBits, int kLowestExponent>
SPARKFP4_KEY_OP Word narrow(Word magnitude, Float *value) {
  constexpr uint32_t kLowest = static_cast<uint32_t>(127 + kLowestExponent) << 23;
  Word exponent = Max::of(magnitude & kInfinityBits, all_words(kLowest));
  Word magic = exponent + (static_cast<uint32_t>(23 - kMantissaBits) << 23);
  Float sum = as<Float>(magnitude) + as<Float>(magic);
  *value = sum - as<Float>(magic);
  return as<Word>(sum) - magic + ((exponent - kLowest) >> (23 - kMantissaBits));
}

SPARKFP4_KEY_OP Word at_most(Word magnitude, uint32_t limit) {
  Word largest = all_words(limit);
  return magnitude < largest ? magnitude : largest;
}

// Stores a block as its type, nearest even; gives the largest magnitude.
template <typename Type>
SPARKFP4_KEY_OP Word store_block(unsigned char *to, const Block &block) {
  Word largest = {};
  SPARKFP4_EACH_PART {
    Float even = block.even[part];
    Float odd = block.odd[part];
    largest = Max::of(largest, Max::of(magnitudes(even), magnitudes(odd)));
    if constexpr (Type::kSource == F32::kSource) {
      auto low = SPARKFP4_LANES(interleaved_low);
      auto high = SPARKFP4_LANES(interleaved_high);
      store_vector(to + 8 * kWidth * part, shuffle(even, odd, low));
      store_vector(to + 8 * kWidth * part + 4 * kWidth, shuffle(even, odd, high));
    } else if constexpr (Type::kSource == Bf16::kSource) {
      Word words = as<Word>(round_bf16(even)) >> 16 | (as<Word>(round_bf16(odd)) & 0xffff0000);
      store_vector(to + 4 * kWidth * part, words);
    } else {
      Float ignored;
      constexpr uint32_t kOverflow = 143u << 23;  // 2^16
      Word low = narrow<10, -14>(at_most(magnitudes(even), kOverflow), &ignored) | (as<Word>(even) >> 16 & 0x8000);
      Word high = narrow<10, -14>(at_most(magnitudes(odd), kOverflow), &ignored) | (as<Word>(odd) >> 16 & 0x8000);
      store_vector(to + 4 * kWidth * part, low | high << 16);
    }
  }

  return largest;
}

// From this magnitude on a value is infinite once it is stored.
template <typename Type>
constexpr uint32_t kStoredInfinity = Type::kSource == F32::kSource    ? kInfinityBits
                                     : Type::kSource == Bf16::kSource ? 0x7f7f8000
                                                                      : 0x477ff000;

}  // namespace
}  // namespace sparkfp4
