// The vector tiers' algorithm, over the operations of one instruction set (an Isa).
//
// A strip has as many blocks as a vector has 32-bit lanes. Its source is transposed while it is loaded, so that lane b
// of every vector belongs to block b: a block's amax, scale and error sums then need no work across lanes.
//
// No element is divided. Rounding is monotonic, so the code of w, the number of E2M1 midpoints that RN(|w| / d) passes,
// is the number of thresholds that |w| passes, the threshold of a midpoint being the smallest float whose quotient
// passes. thresholds() finds them once a block and narrows them to the source's type, in which they are compared as
// integers. All of it is exact for d in [kMinFactor, kMaxFactor]; outside, the scalar tier divides.
//
// Included by one file a tier, which gives its Isa internal linkage and so keeps these instances to itself.
#pragma once

#include <utility>

#include "codes.h"
#include "sweep.h"

namespace sparkfp4 {

constexpr int kGroup = 4;        // strips that are prepared before their elements are encoded

// The squares of w and w - e2m1(code) * d, one rounding an operation.
template <typename Isa>
struct Squares {
  typename Isa::Float weight;
  typename Isa::Float error;
};

template <typename Isa>
SPARKFP4_INLINE Squares<Isa> squares(typename Isa::Float w, typename Isa::Int code, typename Isa::Float d) {
  typename Isa::Float error = Isa::sub(w, Isa::mul(Isa::e2m1(code), d));
  return {Isa::mul(w, w), Isa::mul(error, error)};
}

// What the widths of elements differ in. Lane b of vector j holds elements 2j and 2j + 1 of block b, or, for 32-bit
// elements, element j; codes.h has those of codes.
template <typename Type>
struct Layout {
  static constexpr bool kNarrow = sizeof(typename Type::Bits) == 2;
  static constexpr int kBytes = sizeof(typename Type::Bits);
  static constexpr int kVectors = Type::kCodes ? kCodeVectors : kNarrow ? 8 : 16;
  static constexpr uint32_t kMagnitude = Type::kCodes ? kCodeMagnitude : kNarrow ? 0x7fff7fff : 0x7fffffff;
};

template <typename Isa, typename Type>
SPARKFP4_INLINE void load_strip(const unsigned char *source, typename Isa::Int *x) {
  if constexpr (Type::kCodes) {
    load_codes<Isa, Type>(source, x);
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < Layout<Type>::kVectors / 4; i++) {
      Isa::load_transposed(source + 16 * i, Type::kBlockBytes, x + 4 * i);
    }
  }
}

// The blocks' largest magnitudes, as a Type's bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int largest_magnitudes(const typename Isa::Int *x) {
  using Int = typename Isa::Int;
  constexpr int kVectors = Layout<Type>::kVectors;
  Int largest[kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kVectors; j++) {
    largest[j] = Isa::bit_and(x[j], Isa::set(Layout<Type>::kMagnitude));
  }

#pragma GCC unroll 4
  for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int j = 0; j < half; j++) {
      largest[j] = Layout<Type>::kNarrow ? Isa::max_u16(largest[j], largest[j + half])
                                         : Isa::max_u32(largest[j], largest[j + half]);
    }
  }

  if constexpr (Layout<Type>::kNarrow) {
    Int high = Isa::template shift_right<16>(largest[0]);
    return Isa::max_u32(Isa::bit_and(largest[0], Isa::set(0xffff)), high);
  } else {
    return largest[0];
  }
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
  typename Isa::Int magnitude = Isa::bit_and(x, Isa::set(Layout<Type>::kMagnitude));
  return Type::kCodes             ? Isa::code_8(x, magnitude, bits)
         : Layout<Type>::kNarrow ? Isa::code_16(x, magnitude, bits)
                                 : Isa::code_32(x, magnitude, bits);
}

// Eight codes of each block in a lane, the first in its lowest bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int pack_half(const typename Isa::Int *codes) {
  using Int = typename Isa::Int;
  if constexpr (Type::kCodes) {
    return pack_codes<Isa, Type>(codes);
  } else if constexpr (Layout<Type>::kNarrow) {
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

// A strip between its two steps.
template <typename Isa, typename Type>
struct Prepared {
  typename Isa::Int x[Layout<Type>::kVectors];
  typename Isa::Int bits[kThresholds];
  typename Isa::Float d;
  typename Isa::Float source_scale;  // of codes
};

template <typename Isa>
SPARKFP4_INLINE Squares<Isa> plus(Squares<Isa> a, Squares<Isa> b) {
  return {Isa::add(a.weight, b.weight), Isa::add(a.error, b.error)};
}

// Element i and i + 8 of codes.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE Squares<Isa> two_squares_of_codes(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  constexpr int kVector = kNibbles<Type> ? kElement % 2 : kElement / 4;
  constexpr int kByte = kNibbles<Type> ? kElement / 2 : kElement % 4;
  Squares<Isa> both[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    // The squares are the same without the signs.
    typename Isa::Float w = code_magnitude<Isa, Type, kByte>(strip.x[kVector + 2 * i], strip.source_scale);
    typename Isa::Int code = Isa::template shift_right<8 * kByte>(codes[kVector + 2 * i]);
    typename Isa::Float error = Isa::sub(w, Isa::mul(Isa::e2m1_magnitude(code), strip.d));
    both[i] = {Isa::mul(w, w), Isa::mul(error, error)};
  }

  return plus<Isa>(both[0], both[1]);
}

// Element i and i + 8.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE Squares<Isa> two_squares(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  using Int = typename Isa::Int;
  if constexpr (Type::kCodes) {
    return two_squares_of_codes<Isa, Type, kElement>(strip, codes);
  } else {
    constexpr int kFirst = Layout<Type>::kNarrow ? kElement / 2 : kElement;
    constexpr int kSecond = kFirst + Layout<Type>::kVectors / 2;
    Int a = strip.x[kFirst];
    Int b = strip.x[kSecond];
    if constexpr (!Isa::kSignedE2m1) {
      // The squares are the same without the signs.
      a = Isa::bit_and(a, Isa::set(Layout<Type>::kMagnitude));
      b = Isa::bit_and(b, Isa::set(Layout<Type>::kMagnitude));
    }

    if constexpr (Layout<Type>::kNarrow && kElement % 2 == 1) {
      return plus<Isa>(
          squares<Isa>(widen_high<Isa, Type>(a), Isa::template shift_right<16>(codes[kFirst]), strip.d),
          squares<Isa>(widen_high<Isa, Type>(b), Isa::template shift_right<16>(codes[kSecond]), strip.d));
    } else {
      return plus<Isa>(squares<Isa>(widen_low<Isa, Type>(a), codes[kFirst], strip.d),
                       squares<Isa>(widen_low<Isa, Type>(b), codes[kSecond], strip.d));
    }
  }
}

// The fixed tree: i with i + 8, then i + 4, i + 2, i + 1.
template <typename Isa, typename Type>
SPARKFP4_INLINE Squares<Isa> sum_squares(const Prepared<Isa, Type> &strip, const typename Isa::Int *codes) {
  auto s04 = plus<Isa>(two_squares<Isa, Type, 0>(strip, codes), two_squares<Isa, Type, 4>(strip, codes));
  auto s26 = plus<Isa>(two_squares<Isa, Type, 2>(strip, codes), two_squares<Isa, Type, 6>(strip, codes));
  auto even = plus<Isa>(s04, s26);
  auto s15 = plus<Isa>(two_squares<Isa, Type, 1>(strip, codes), two_squares<Isa, Type, 5>(strip, codes));
  auto s37 = plus<Isa>(two_squares<Isa, Type, 3>(strip, codes), two_squares<Isa, Type, 7>(strip, codes));
  auto odd = plus<Isa>(s15, s37);
  return plus<Isa>(even, odd);
}

// An element of all blocks without its sign.
template <typename Isa, typename Type, int kElement>
SPARKFP4_INLINE typename Isa::Float wide_magnitude(const typename Isa::Int *x, typename Isa::Float source_scale) {
  if constexpr (Type::kCodes) {
    constexpr int kInHalf = kElement % 8;
    constexpr int kVector = (kNibbles<Type> ? kInHalf % 2 : kInHalf / 4) + kElement / 8 * 2;
    constexpr int kByte = kNibbles<Type> ? kInHalf / 2 : kInHalf % 4;
    return code_magnitude<Isa, Type, kByte>(x[kVector], source_scale);
  } else {
    typename Isa::Int magnitude =
        Isa::bit_and(x[Layout<Type>::kNarrow ? kElement / 2 : kElement], Isa::set(Layout<Type>::kMagnitude));
    if constexpr (Layout<Type>::kNarrow && kElement % 2 == 1) {
      return widen_high<Isa, Type>(magnitude);
    } else {
      return widen_low<Isa, Type>(magnitude);
    }
  }
}

template <typename Isa, typename Type, int... kElements>
SPARKFP4_INLINE void widen_strip(const typename Isa::Int *x, typename Isa::Float source_scale, WideStrip<Isa> *strip,
                                 std::integer_sequence<int, kElements...>) {
  (Isa::store_floats(strip->w + kElements * Isa::kWidth, wide_magnitude<Isa, Type, kElements>(x, source_scale)), ...);
}

// The largest |w| of all blocks, as a Type's bits; what is not finite exceeds all that is.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int strip_amax(const typename Isa::Int *x, typename Isa::Float source_scale) {
  if constexpr (Type::kCodes) {
    return largest_of_codes<Isa, Type>(largest_codes<Isa>(x), source_scale);
  } else {
    return largest_magnitudes<Isa, Type>(x);
  }
}

// Writes the scales that the task's search gives a strip; block is its first one's place in the task.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static void choose_scales(const EncodeTask &task, int64_t block, const unsigned char *source,
                          const float *block_scales, unsigned char *scales) {
  typename Isa::Int x[Layout<Type>::kVectors];
  load_strip<Isa, Type>(source, x);
  typename Isa::Float source_scale = Isa::set_float(0);
  if constexpr (Type::kCodes) {
    source_scale = Isa::load_floats(block_scales);
  }

  WideStrip<Isa> strip;
  widen_strip<Isa, Type>(x, source_scale, &strip, std::make_integer_sequence<int, kBlock>());
  typename Isa::Float amax = widen_low<Isa, Type>(strip_amax<Isa, Type>(x, source_scale));
  search_strip<Isa, kRecipe, Type>(strip, amax, task, block, scales);
}

// Of scales that are written already.
template <typename Isa, sparkfp4_recipe kRecipe>
SPARKFP4_INLINE Factors<Isa> given_factors(const unsigned char *scales, float global_scale) {
  typename Isa::Int bytes = Isa::load_bytes(scales);
  return {bytes, factor_of<Isa, kRecipe>(e4m3_value<Isa>(Isa::template shift_left<20>(bytes)), global_scale)};
}

// Loads a strip, writes its scales, unless they are given, and finds its thresholds. False, for which nothing is to be relied on, where d
// or the source's scale leaves the range in which those are exact.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kGiven>
SPARKFP4_INLINE bool prepare_strip(const unsigned char *source, const float *block_scales, float global_scale,
                                   unsigned char *scales, typename Isa::Int *largest, Prepared<Isa, Type> *strip) {
  using Int = typename Isa::Int;
  Int x[Layout<Type>::kVectors];
  load_strip<Isa, Type>(source, x);
#pragma GCC unroll 16
  for (int j = 0; j < Layout<Type>::kVectors; j++) {
    strip->x[j] = x[j];
  }

  if constexpr (Type::kCodes) {
    strip->source_scale = Isa::load_floats(block_scales);
  }

  Int amax = strip_amax<Isa, Type>(x, strip->source_scale);
  *largest = Isa::max_u32(*largest, amax);
  Factors<Isa> block;
  if constexpr (kGiven) {
    block = given_factors<Isa, kRecipe>(scales, global_scale);
  } else {
    block = factors<Isa, kRecipe, Type>(widen_low<Isa, Type>(amax), 6.0f, global_scale);
    Isa::store_bytes(scales, block.bytes);
  }

  Int bits[kThresholds];
  thresholds<Isa>(block.d, bits);
  if constexpr (Type::kCodes) {
    narrow_codes<Isa, Type>(bits, strip->source_scale);
  } else if constexpr (Layout<Type>::kNarrow) {
    narrow<Isa, Type>(bits);
  }

#pragma GCC unroll 8
  for (int i = 0; i < kThresholds; i++) {
    strip->bits[i] = bits[i];
  }

  strip->d = block.d;
  if constexpr (Type::kCodes) {
    return within<Isa>(block.d, kMinScale, kMaxScale) && within<Isa>(strip->source_scale, kMinScale, kMaxScale);
  } else {
    return within<Isa>(block.d, kMinFactor, kMaxFactor);
  }
}

// Writes a strip's codes and adds its errors to the lanes from lane on.
template <typename Isa, typename Type, bool kSums>
SPARKFP4_INLINE void finish_strip(const Prepared<Isa, Type> &strip, unsigned char *packed, ErrorLanes *sums, int lane) {
  using Int = typename Isa::Int;
  constexpr int kVectors = Layout<Type>::kVectors;
  Int codes[kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kVectors; j++) {
    codes[j] = encode_vector<Isa, Type>(strip.x[j], strip.bits);
  }

  Isa::store_pairs(packed, pack_half<Isa, Type>(codes), pack_half<Isa, Type>(codes + kVectors / 2));
  if constexpr (kSums) {
    Squares<Isa> total = sum_squares<Isa, Type>(strip, codes);
    Isa::accumulate(sums->squares + lane, total.weight);
    Isa::accumulate(sums->errors + lane, total.error);
  }
}

// Encodes up to kGroup strips, the first of which has lane 0, and raises largest. The first step is a long chain of
// operations, most of all a division, and the second is short: strip by strip the processor would wait.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kSums, bool kSearched>
SPARKFP4_INLINE void encode_group(const EncodeTask &group, typename Isa::Int *largest) {
  constexpr int64_t kStripBytes = Isa::kWidth * Type::kBlockBytes;
  Prepared<Isa, Type> strips[kGroup];
  int count = static_cast<int>(group.blocks / Isa::kWidth);
  bool exact = true;
  for (int i = 0; i < count; i++) {
    const unsigned char *source = group.source + i * kStripBytes;
    for (int j = 0; j < kStripBytes; j += 64) {
      __builtin_prefetch(source + kPrefetch + j);
    }

    const float *block_scales = Type::kCodes ? group.block_scales + i * Isa::kWidth : nullptr;
    unsigned char *scales = group.scales + i * Isa::kWidth;
    if constexpr (kSearched) {
      choose_scales<Isa, kRecipe, Type>(group, i * Isa::kWidth, source, block_scales, scales);
    }

    exact &= prepare_strip<Isa, kRecipe, Type, kSearched>(source, block_scales, group.global_scale, scales, largest,
                                                          &strips[i]);
  }

  if (!exact) {
    kScalarKernel.encode[kRecipe][Type::kSource](group);
    return;
  }

  for (int i = 0; i < count; i++) {
    finish_strip<Isa, Type, kSums>(strips[i], group.packed + i * Isa::kWidth * kPackedBlock, group.sums,
                                   i * Isa::kWidth % kLanes);
  }
}

template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kSums, bool kSearched>
static uint32_t encode_blocks(const EncodeTask &task) {
  constexpr int64_t kGroupBlocks = kGroup * Isa::kWidth;
  static_assert(kGroupBlocks % kLanes == 0, "a group begins at lane 0");
  typename Isa::Int largest = Isa::set(0);
  EncodeTask group = task;
  int64_t left = task.blocks;
  while (left >= Isa::kWidth) {
    group.blocks = left >= kGroupBlocks ? kGroupBlocks : left / Isa::kWidth * Isa::kWidth;
    encode_group<Isa, kRecipe, Type, kSums, kSearched>(group, &largest);
    group.source += group.blocks * Type::kBlockBytes;
    group.block_scales += Type::kCodes ? group.blocks : 0;
    group.packed += group.blocks * kPackedBlock;
    group.scales += group.blocks;
    group.first_block += group.blocks;
    left -= group.blocks;
  }

  uint32_t rest = 0;
  if (left > 0) {
    // Less than a strip: to the scalar tier, with lanes from 0 on that are then moved to their place.
    ErrorLanes own = {};
    group.blocks = left;
    group.sums = kSums ? &own : nullptr;
    rest = kScalarKernel.encode[kRecipe][Type::kSource](group);
    int lane = static_cast<int>((task.blocks - left) % kLanes);
    for (int i = 0; kSums && i < left; i++) {
      task.sums->squares[lane + i] += own.squares[i];
      task.sums->errors[lane + i] += own.errors[i];
    }
  }

  uint32_t main = Isa::reduce_max_u32(largest);
  return rest > main ? rest : main;
}

template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static uint32_t encode(const EncodeTask &task) {
  if (task.search == SPARKFP4_WEIGHTED_HESSIAN) {
    return kScalarKernel.encode[kRecipe][Type::kSource](task);
  }

  if (task.search != SPARKFP4_RTN) {
    // Beside the search the sums cost little.
    ErrorLanes unwanted = {};
    EncodeTask searched = task;
    searched.sums = task.sums == nullptr ? &unwanted : task.sums;
    return encode_blocks<Isa, kRecipe, Type, true, true>(searched);
  }

  return task.sums == nullptr ? encode_blocks<Isa, kRecipe, Type, false, false>(task)
                              : encode_blocks<Isa, kRecipe, Type, true, false>(task);
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

  uint32_t rest = kScalarKernel.amax[Type::kSource](source + whole, (bytes - whole) / Layout<Type>::kBytes);
  uint32_t main = Isa::reduce_max_u32(largest[0]);
  return rest > main ? rest : main;
}

template <typename Isa>
constexpr Kernel kernel_of() {
  return {{amax<Isa, Bf16>, amax<Isa, F16>, amax<Isa, F32>},
          {{encode<Isa, SPARKFP4_MODELOPT, Bf16>, encode<Isa, SPARKFP4_MODELOPT, F16>,
            encode<Isa, SPARKFP4_MODELOPT, F32>, encode<Isa, SPARKFP4_MODELOPT, E4m3>,
            encode<Isa, SPARKFP4_MODELOPT, Int4>, encode<Isa, SPARKFP4_MODELOPT, E2m1>},
           {encode<Isa, SPARKFP4_COMPRESSED_TENSORS, Bf16>, encode<Isa, SPARKFP4_COMPRESSED_TENSORS, F16>,
            encode<Isa, SPARKFP4_COMPRESSED_TENSORS, F32>, encode<Isa, SPARKFP4_COMPRESSED_TENSORS, E4m3>,
            encode<Isa, SPARKFP4_COMPRESSED_TENSORS, Int4>, encode<Isa, SPARKFP4_COMPRESSED_TENSORS, E2m1>}},
          {code_amax<Isa, E4m3>, code_amax<Isa, Int4>, code_amax<Isa, E2m1>},
          {e4m3_to_bf16<Isa>, to_bf16<Int4>, to_bf16<E2m1>},
          code_squares<Isa>};
}

}  // namespace sparkfp4
