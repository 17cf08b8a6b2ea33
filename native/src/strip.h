// The vector tiers' algorithm, over the operations of one instruction set (an Isa).
//
// A strip has as many blocks as a vector has 32-bit lanes. Its source is transposed while it is loaded, so that lane b of
// every vector belongs to block b: a block's amax, scale and error sums then need no work across lanes.
//
// No element is divided. Rounding is monotonic, so the code of w, the number of E2M1 midpoints that RN(|w| / d) passes,
// is the number of thresholds that |w| passes, the threshold of a midpoint being the smallest float whose quotient
// passes. Thresholds() finds them once a block and narrows them to the source's type, in which they are compared as
// integers. All of it is exact for d in [kMinFactor, kMaxFactor]; other strips go to the scalar tier, which divides.
//
// Included by one file a tier, which gives its Isa internal linkage and so keeps these instances to itself.
#pragma once

#include <type_traits>

#include "arithmetic.h"

#define SPARKFP4_INLINE __attribute__((always_inline)) static inline

namespace sparkfp4 {

constexpr float kMinFactor = 0x1p-100f;
constexpr float kMaxFactor = 0x1p125f;
constexpr int kThresholds = 8;
constexpr int kPrefetch = 2048;  // bytes ahead of the load

template <typename Isa>
struct Factors {
  typename Isa::Int bytes;  // E4M3
  typename Isa::Float d;
};

// Both halves of each lane get its high (kHigh) or low 16 bits.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Int duplicate_high(typename Isa::Int x) {
  return Isa::bit_or(Isa::bit_and(x, Isa::set(0xffff0000)), Isa::template shift_right<16>(x));
}

template <typename Isa>
SPARKFP4_INLINE typename Isa::Int duplicate_low(typename Isa::Int x) {
  return Isa::bit_or(Isa::template shift_left<16>(x), x);
}

// 0 <= x <= 448 to E4M3, nearest even.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Float round_e4m3(typename Isa::Float x, typename Isa::Int *bytes) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  // The spacing of floats at 2^14 is 2^-9, that of E4M3's subnormals.
  Float magic = Isa::set_float(0x1.8p14f);
  Float shifted = Isa::add(x, magic);
  Int bits = Isa::as_int(x);
  Int odd = Isa::bit_and(Isa::template shift_right<20>(bits), Isa::set(1));
  Int rounded = Isa::add_int(bits, Isa::add_int(odd, Isa::set(0x7ffff)));
  auto subnormal = Isa::less(x, Isa::set_float(0x1p-6f));
  *bytes = Isa::select_int(subnormal, Isa::bit_and(Isa::as_int(shifted), Isa::set(0xf)),
                           Isa::sub_int(Isa::template shift_right<20>(rounded), Isa::set(120 << 3)));
  return Isa::select(subnormal, Isa::sub(shifted, magic), Isa::as_float(Isa::bit_and(rounded, Isa::set(0xfff00000))));
}

template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
SPARKFP4_INLINE Factors<Isa> factors(typename Isa::Float amax, float global_scale) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  Float zero = Isa::set_float(0);
  Factors<Isa> result;
  if constexpr (kRecipe == SPARKFP4_MODELOPT) {
    Float ratio = Isa::divide(amax, Isa::set_float(6.0f * global_scale));
    Float clamped = Isa::min(Isa::max(ratio, Isa::set_float(0x1p-9f)), Isa::set_float(448.0f));
    Float positive = Isa::select(Isa::equal(ratio, zero), Isa::set_float(1.0f), clamped);
    result.d = Isa::mul(round_e4m3<Isa>(positive, &result.bytes), Isa::set_float(global_scale));
  } else {
    Float sixth = Isa::divide(amax, Isa::set_float(6.0f));
    if constexpr (std::is_same_v<Type, Bf16>) {
      Int bits = Isa::as_int(sixth);
      Int odd = Isa::bit_and(Isa::template shift_right<16>(bits), Isa::set(1));
      Int rounded = Isa::add_int(bits, Isa::add_int(odd, Isa::set(0x7fff)));
      sixth = Isa::as_float(Isa::bit_and(rounded, Isa::set(0xffff0000)));
    }

    Float ratio = Isa::min(Isa::mul(Isa::set_float(global_scale), sixth), Isa::set_float(448.0f));
    Float scale = round_e4m3<Isa>(ratio, &result.bytes);
    auto none = Isa::equal(scale, zero);
    result.bytes = Isa::select_int(none, Isa::set(0x20), result.bytes);
    scale = Isa::select(none, Isa::set_float(0.125f), scale);
    result.d = Isa::divide(scale, Isa::set_float(global_scale));
  }

  return result;
}

template <typename Isa>
SPARKFP4_INLINE bool proved(typename Isa::Float d) {
  return Isa::all(Isa::less_equal(Isa::set_float(kMinFactor), d)) && Isa::all(Isa::less_equal(d, Isa::set_float(kMaxFactor)));
}

// Of the midpoint m and the floats just below them, as bits: of the largest float w whose RN(w / d) is no greater than m
// (kStrict: a tie goes down, to the even code) or is less than m. With u half the spacing of floats at m, the quotient
// passes if and only if w > d * (m + u), resp. w >= d * (m - u): a tie at that bound rounds to m, whose mantissa is even.
// The bound, d * m plus or minus d * u, is rounded once, and the exact remainder tells on which side of it that fell.
template <typename Isa, bool kStrict>
SPARKFP4_INLINE typename Isa::Int threshold(typename Isa::Float d, float m, float u) {
  using Float = typename Isa::Float;
  Float midpoint = Isa::set_float(m);
  Float margin = Isa::mul(d, Isa::set_float(kStrict ? u : -u));
  Float nearest = Isa::mul_add(d, midpoint, margin);
  Float remainder = Isa::sub_mul(nearest, d, midpoint);
  auto passes = kStrict ? Isa::less(margin, remainder) : Isa::less_equal(margin, remainder);
  return Isa::decrement_if(passes, Isa::as_int(nearest));
}

// bits[0]: of the largest w whose quotient is zero, which has no sign; bits[i]: of the largest w that gets a code below i.
// 2.5 and 5, and 3.5, are the doubles of 1.25 and 1.75, and so are their thresholds.
template <typename Isa>
SPARKFP4_INLINE void thresholds(typename Isa::Float d, typename Isa::Int *bits) {
  using Int = typename Isa::Int;
  Int doubled = Isa::set(1 << 23);
  // d * 2^-150 rounded down: in units of the smallest subnormal, or as a normal float.
  Int subnormal = Isa::truncate(Isa::mul(d, Isa::set_float(0.5f)));
  Int normal = Isa::sub_int(Isa::as_int(d), Isa::set(150u << 23));
  bits[0] = Isa::select_int(Isa::less(d, Isa::set_float(0x1p24f)), subnormal, normal);
  bits[1] = Isa::as_int(Isa::mul(d, Isa::set_float(0.25f)));
  bits[2] = threshold<Isa, false>(d, 0.75f, 0x1p-25f);
  bits[3] = threshold<Isa, true>(d, 1.25f, 0x1p-24f);
  bits[4] = threshold<Isa, false>(d, 1.75f, 0x1p-24f);
  bits[5] = Isa::add_int(bits[3], doubled);
  bits[6] = Isa::add_int(bits[4], doubled);
  bits[7] = Isa::add_int(bits[5], doubled);
}

// The thresholds as the largest values of a 16-bit type that do not pass, in both halves of a lane.
template <typename Isa, typename Type>
SPARKFP4_INLINE void narrow(typename Isa::Int *bits) {
  if constexpr (std::is_same_v<Type, Bf16>) {
    for (int i = 0; i < kThresholds; i++) {
      bits[i] = duplicate_high<Isa>(bits[i]);
    }
  } else {
    // d <= kMaxFactor leaves no quotient of a binary16 but 0 so small that it rounds to zero.
    bits[0] = Isa::set(0);
    for (int i = 1; i < kThresholds; i++) {
      typename Isa::Int passes = Isa::add_int(bits[i], Isa::set(1));
      typename Isa::Int up = Isa::to_half_upwards(Isa::as_float(passes));
      bits[i] = duplicate_low<Isa>(Isa::sub_int(up, Isa::set(1)));
    }
  }
}

// The squares of |w| and |w| - magnitude * d, one rounding an operation.
template <typename Isa>
struct Squares {
  typename Isa::Float weight;
  typename Isa::Float error;
};

template <typename Isa>
SPARKFP4_INLINE Squares<Isa> squares(typename Isa::Float w, typename Isa::Int code, typename Isa::Float d) {
  typename Isa::Float error = Isa::sub(w, Isa::mul(Isa::e2m1_magnitude(code), d));
  return {Isa::mul(w, w), Isa::mul(error, error)};
}

// What the two widths of elements differ in. Lane b of vector j holds elements 2j and 2j + 1 of block b, or, for 32-bit
// elements, element j.
template <typename Type>
struct Layout {
  static constexpr bool kNarrow = sizeof(typename Type::Bits) == 2;
  static constexpr int kBytes = sizeof(typename Type::Bits);
  static constexpr int kVectors = kNarrow ? 8 : 16;
  static constexpr uint32_t kMagnitude = kNarrow ? 0x7fff7fff : 0x7fffffff;
};

template <typename Isa, typename Type>
SPARKFP4_INLINE void load_strip(const unsigned char *source, typename Isa::Int *x) {
#pragma GCC unroll 4
  for (int i = 0; i < Layout<Type>::kVectors / 4; i++) {
    Isa::load_transposed(source + 16 * i, kBlock * Layout<Type>::kBytes, x + 4 * i);
  }
}

// The blocks' largest magnitudes, as a Type's bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int largest_magnitudes(const typename Isa::Int *x) {
  using Int = typename Isa::Int;
  Int magnitude = Isa::set(Layout<Type>::kMagnitude);
  Int largest = Isa::bit_and(x[0], magnitude);
#pragma GCC unroll 16
  for (int j = 1; j < Layout<Type>::kVectors; j++) {
    Int other = Isa::bit_and(x[j], magnitude);
    largest = Layout<Type>::kNarrow ? Isa::max_u16(largest, other) : Isa::max_u32(largest, other);
  }

  if constexpr (Layout<Type>::kNarrow) {
    Int high = Isa::template shift_right<16>(largest);
    largest = Isa::max_u32(Isa::bit_and(largest, Isa::set(0xffff)), high);
  }

  return largest;
}

// Bits of a Type, in the low half of each lane where it is narrow, to binary32.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Float widen_low(typename Isa::Int bits) {
  if constexpr (std::is_same_v<Type, Bf16>) {
    return Isa::as_float(Isa::template shift_left<16>(bits));
  } else if constexpr (std::is_same_v<Type, F16>) {
    return Isa::from_half(bits);
  } else {
    return Isa::as_float(bits);
  }
}

template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Float widen_high(typename Isa::Int bits) {
  if constexpr (std::is_same_v<Type, Bf16>) {
    return Isa::as_float(Isa::bit_and(bits, Isa::set(0xffff0000)));
  } else {
    return Isa::from_half(Isa::template shift_right<16>(bits));
  }
}

// Codes of all elements of a vector, each in the low bits of its place.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int encode_vector(typename Isa::Int x, const typename Isa::Int *bits) {
  using Int = typename Isa::Int;
  Int magnitude = Isa::bit_and(x, Isa::set(Layout<Type>::kMagnitude));
  if constexpr (Layout<Type>::kNarrow) {
    Int code = Isa::signed_code_16(x, magnitude, bits[0]);
#pragma GCC unroll 8
    for (int i = 1; i < kThresholds; i++) {
      code = Isa::count_greater_16(code, magnitude, bits[i]);
    }

    return code;
  } else {
    Int code = Isa::signed_code_32(x, magnitude, bits[0]);
#pragma GCC unroll 8
    for (int i = 1; i < kThresholds; i++) {
      code = Isa::count_greater_32(code, magnitude, bits[i]);
    }

    return code;
  }
}

// Eight codes of each block in a lane, the first in its lowest bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int pack_half(const typename Isa::Int *codes) {
  using Int = typename Isa::Int;
  if constexpr (Layout<Type>::kNarrow) {
    // Of a lane's two codes a product makes a byte: the first and 16 times the second.
    Int first = Isa::set(0x00100001);
    Int second = Isa::set(0x10000100);
    Int low = Isa::bit_or(Isa::multiply_pairs(codes[0], first), Isa::multiply_pairs(codes[1], second));
    Int high = Isa::bit_or(Isa::multiply_pairs(codes[2], first), Isa::multiply_pairs(codes[3], second));
    return Isa::bit_or(low, Isa::template shift_left<16>(high));
  } else {
    Int a = Isa::bit_or(codes[0], Isa::template shift_left<4>(codes[1]));
    Int b = Isa::bit_or(codes[2], Isa::template shift_left<4>(codes[3]));
    Int c = Isa::bit_or(codes[4], Isa::template shift_left<4>(codes[5]));
    Int d = Isa::bit_or(codes[6], Isa::template shift_left<4>(codes[7]));
    Int low = Isa::bit_or(a, Isa::template shift_left<8>(b));
    Int high = Isa::bit_or(c, Isa::template shift_left<8>(d));
    return Isa::bit_or(low, Isa::template shift_left<16>(high));
  }
}

template <typename Isa>
SPARKFP4_INLINE Squares<Isa> plus(Squares<Isa> a, Squares<Isa> b) {
  return {Isa::add(a.weight, b.weight), Isa::add(a.error, b.error)};
}

// Element i and i + 8.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE Squares<Isa> two_squares(const typename Isa::Int *x, const typename Isa::Int *codes,
                                         typename Isa::Float d) {
  using Int = typename Isa::Int;
  constexpr int kFirst = Layout<Type>::kNarrow ? kElement / 2 : kElement;
  constexpr int kSecond = kFirst + Layout<Type>::kVectors / 2;
  Int magnitude = Isa::set(Layout<Type>::kMagnitude);
  Int a = Isa::bit_and(x[kFirst], magnitude);
  Int b = Isa::bit_and(x[kSecond], magnitude);
  if constexpr (Layout<Type>::kNarrow && kElement % 2 == 1) {
    return plus<Isa>(
        squares<Isa>(widen_high<Isa, Type>(a), Isa::template shift_right<16>(codes[kFirst]), d),
        squares<Isa>(widen_high<Isa, Type>(b), Isa::template shift_right<16>(codes[kSecond]), d));
  } else {
    return plus<Isa>(squares<Isa>(widen_low<Isa, Type>(a), codes[kFirst], d),
                     squares<Isa>(widen_low<Isa, Type>(b), codes[kSecond], d));
  }
}

// The fixed tree: i with i + 8, then i + 4, i + 2, i + 1.
template <typename Isa, typename Type>
SPARKFP4_INLINE Squares<Isa> sum_squares(const typename Isa::Int *x, const typename Isa::Int *codes,
                                         typename Isa::Float d) {
  auto s04 = plus<Isa>(two_squares<Isa, Type, 0>(x, codes, d), two_squares<Isa, Type, 4>(x, codes, d));
  auto s26 = plus<Isa>(two_squares<Isa, Type, 2>(x, codes, d), two_squares<Isa, Type, 6>(x, codes, d));
  auto even = plus<Isa>(s04, s26);
  auto s15 = plus<Isa>(two_squares<Isa, Type, 1>(x, codes, d), two_squares<Isa, Type, 5>(x, codes, d));
  auto s37 = plus<Isa>(two_squares<Isa, Type, 3>(x, codes, d), two_squares<Isa, Type, 7>(x, codes, d));
  auto odd = plus<Isa>(s15, s37);
  return plus<Isa>(even, odd);
}

// Encodes a strip at the task's beginning; lane is that of its first block. False, with nothing written, where d leaves
// the range in which the thresholds are exact.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kSums>
SPARKFP4_INLINE bool encode_strip(const EncodeTask &task, int lane, typename Isa::Int *largest) {
  using Int = typename Isa::Int;
  constexpr int kVectors = Layout<Type>::kVectors;
  Int x[kVectors];
  load_strip<Isa, Type>(task.source, x);
  Int amax = largest_magnitudes<Isa, Type>(x);
  Factors<Isa> block = factors<Isa, kRecipe, Type>(widen_low<Isa, Type>(amax), task.global_scale);
  *largest = Isa::max_u32(*largest, amax);
  if (__builtin_expect(!proved<Isa>(block.d), false)) {
    return false;
  }

  Int bits[kThresholds];
  thresholds<Isa>(block.d, bits);
  if constexpr (Layout<Type>::kNarrow) {
    narrow<Isa, Type>(bits);
  }

  Int codes[kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kVectors; j++) {
    codes[j] = encode_vector<Isa, Type>(x[j], bits);
  }

  Isa::store_pairs(task.packed, pack_half<Isa, Type>(codes), pack_half<Isa, Type>(codes + kVectors / 2));
  Isa::store_bytes(task.scales, block.bytes);
  if constexpr (kSums) {
    Squares<Isa> sums = sum_squares<Isa, Type>(x, codes, block.d);
    Isa::accumulate(task.sums->squares + lane, sums.weight);
    Isa::accumulate(task.sums->errors + lane, sums.error);
  }

  return true;
}

// The scalar tier on a strip, whose blocks have lanes of their own from 0 on.
template <typename Isa>
__attribute__((noinline, cold)) static void divide_strip(EncodeFunction divide, EncodeTask strip, int lane) {
  ErrorLanes own = {};
  ErrorLanes *sums = strip.sums;
  strip.sums = sums == nullptr ? nullptr : &own;
  divide(strip);
  for (int i = 0; sums != nullptr && i < Isa::kWidth; i++) {
    sums->squares[lane + i] += own.squares[i];
    sums->errors[lane + i] += own.errors[i];
  }
}

template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kSums>
static uint32_t encode_strips(const EncodeTask &task) {
  constexpr int64_t kBytes = kBlock * Layout<Type>::kBytes;
  constexpr int kDtype = std::is_same_v<Type, Bf16> ? SPARKFP4_BF16 : std::is_same_v<Type, F16> ? SPARKFP4_F16 : SPARKFP4_F32;
  EncodeFunction divide = kScalarKernel.encode[kRecipe][kDtype];
  typename Isa::Int largest = Isa::set(0);
  int64_t whole = task.blocks / Isa::kWidth * Isa::kWidth;
  EncodeTask strip = task;
  strip.blocks = Isa::kWidth;
  for (int64_t block = 0; block < whole; block += Isa::kWidth) {
    int lane = static_cast<int>(block % kLanes);
    for (int i = 0; i < Isa::kWidth * kBytes; i += 64) {
      __builtin_prefetch(strip.source + kPrefetch + i);
    }

    if (!encode_strip<Isa, kRecipe, Type, kSums>(strip, lane, &largest)) {
      divide_strip<Isa>(divide, strip, lane);
    }

    strip.source += Isa::kWidth * kBytes;
    strip.packed += Isa::kWidth * kPackedBlock;
    strip.scales += Isa::kWidth;
  }

  int rest = static_cast<int>(task.blocks - whole);
  if (rest > 0) {
    // Blocks of zeros fill the strip: they add 0 to lanes that no other block of it has.
    unsigned char source[Isa::kWidth * kBytes] = {};
    unsigned char packed[Isa::kWidth * kPackedBlock];
    unsigned char scales[Isa::kWidth];
    std::memcpy(source, strip.source, rest * kBytes);
    EncodeTask padded = {source, Isa::kWidth, task.global_scale, packed, scales, task.sums};
    int lane = static_cast<int>(whole % kLanes);
    if (!encode_strip<Isa, kRecipe, Type, kSums>(padded, lane, &largest)) {
      divide_strip<Isa>(divide, padded, lane);
    }

    std::memcpy(strip.packed, packed, rest * kPackedBlock);
    std::memcpy(strip.scales, scales, rest);
  }

  return Isa::reduce_max_u32(largest);
}

template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static uint32_t encode(const EncodeTask &task) {
  return task.sums == nullptr ? encode_strips<Isa, kRecipe, Type, false>(task)
                              : encode_strips<Isa, kRecipe, Type, true>(task);
}

template <typename Isa, typename Type>
static uint32_t amax(const unsigned char *source, int64_t elements) {
  using Int = typename Isa::Int;
  constexpr int kUnroll = 4;
  constexpr int64_t kBytes = 4 * Isa::kWidth;
  constexpr bool kNarrow = Layout<Type>::kNarrow;
  Int magnitude = Isa::set(Layout<Type>::kMagnitude);
  Int largest[kUnroll] = {Isa::set(0), Isa::set(0), Isa::set(0), Isa::set(0)};
  int64_t bytes = elements * Layout<Type>::kBytes;
  int64_t whole = bytes / (kUnroll * kBytes) * (kUnroll * kBytes);
  for (int64_t i = 0; i < whole; i += kUnroll * kBytes) {
#pragma GCC unroll 4
    for (int j = 0; j < kUnroll; j++) {
      __builtin_prefetch(source + i + kPrefetch + j * kBytes);
      Int x = Isa::bit_and(Isa::load(source + i + j * kBytes), magnitude);
      largest[j] = kNarrow ? Isa::max_u16(largest[j], x) : Isa::max_u32(largest[j], x);
    }
  }

  for (int j = 1; j < kUnroll; j++) {
    largest[0] = kNarrow ? Isa::max_u16(largest[0], largest[j]) : Isa::max_u32(largest[0], largest[j]);
  }

  if (kNarrow) {
    Int high = Isa::template shift_right<16>(largest[0]);
    largest[0] = Isa::max_u32(Isa::bit_and(largest[0], Isa::set(0xffff)), high);
  }

  constexpr int kDtype = kNarrow ? SPARKFP4_BF16 : SPARKFP4_F32;
  uint32_t rest = kScalarKernel.amax[kDtype](source + whole, (bytes - whole) / Layout<Type>::kBytes);
  uint32_t main = Isa::reduce_max_u32(largest[0]);
  return rest > main ? rest : main;
}

template <typename Isa>
constexpr Kernel kernel_of() {
  return {{amax<Isa, Bf16>, amax<Isa, F16>, amax<Isa, F32>},
          {{encode<Isa, SPARKFP4_MODELOPT, Bf16>, encode<Isa, SPARKFP4_MODELOPT, F16>, encode<Isa, SPARKFP4_MODELOPT, F32>},
           {encode<Isa, SPARKFP4_COMPRESSED_TENSORS, Bf16>, encode<Isa, SPARKFP4_COMPRESSED_TENSORS, F16>,
            encode<Isa, SPARKFP4_COMPRESSED_TENSORS, F32>}}};
}

}  // namespace sparkfp4
