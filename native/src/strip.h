// The vector tiers' algorithm, over the operations of one instruction set (an Isa).
//
// A strip has as many blocks as a vector has 32-bit lanes. Its source is transposed while it is loaded, so that lane b
// of every vector belongs to block b: a block's amax, scale and error sums then need no work across lanes.
//
// No element is divided. Rounding is monotonic, so the code of w, the number of E2M1 midpoints that RN(|w| / d)
// passes, is the number of thresholds that |w| passes, the threshold of a midpoint being the smallest float whose
// quotient passes. thresholds() finds them once a block and narrows them to the source's type, in which they are
// compared as integers. All of it is exact for d in [kMinFactor, kMaxFactor]; outside, the scalar tier divides.
//
// Included by one file a tier, which gives its Isa internal linkage and so keeps these instances to itself.
#pragma once

#include "choice.h"
#include "codes_to_bf16.h"
#include "shared_strip.h"
#include "squares.h"
#include "tabled.h"

namespace sparkfp4 {

constexpr int kGroup = 4;        // strips that are prepared before their elements are encoded

// Loads a strip and gives its blocks' amaxes, as bits.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Int load_prepared(const unsigned char *source, const float *block_scales,
                                                Prepared<Isa, Type> *strip) {
  if constexpr (Type::kCodes) {
    strip->source_scale = Isa::load_floats(block_scales);
  }

  if constexpr (kNibbles<Type>) {
    typename Isa::Int halves[2];
    Isa::load_pairs(source, halves);
    strip->halves[0] = halves[0];
    strip->halves[1] = halves[1];
    return largest_of_codes<Isa, Type>(largest_nibbles<Isa, Type>(halves), strip->source_scale);
  } else {
    typename Isa::Int x[Layout<Type>::kVectors];
    load_strip<Isa, Type>(source, x);
#pragma GCC unroll 16
    for (int j = 0; j < Layout<Type>::kVectors; j++) {
      strip->x[j] = x[j];
    }

    return strip_amax<Isa, Type>(x, strip->source_scale);
  }
}

// Finds what the codes of a strip are told by. False, for which nothing is to be relied on, where d or the source's
// scale leaves the range in which that is exact.
template <typename Isa, typename Type>
SPARKFP4_INLINE bool find_thresholds(Prepared<Isa, Type> *strip) {
  using Int = typename Isa::Int;
  typename Isa::Float d = strip->d;
  if constexpr (kNibbles<Type>) {
    Int tables[2];
    nibble_tables<Isa, Type>(d, strip->source_scale, tables);
    strip->tables[0] = tables[0];
    strip->tables[1] = tables[1];
  } else {
    Int bits[kThresholds];
    if constexpr (Type::kCodes) {
      thresholds_of_e4m3<Isa>(d, strip->source_scale, bits);
    } else {
      thresholds<Isa>(d, bits);
      if constexpr (Layout<Type>::kNarrow) {
        narrow<Isa, Type>(bits);
      }
    }

#pragma GCC unroll 8
    for (int i = 0; i < kThresholds; i++) {
      strip->bits[i] = bits[i];
    }
  }

  if constexpr (Type::kCodes) {
    return within<Isa>(d, kMinScale, kMaxScale) && within<Isa>(strip->source_scale, kMinScale, kMaxScale);
  } else {
    return within<Isa>(d, kMinFactor, kMaxFactor);
  }
}

// Loads a strip and writes its scales, unless they are given.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kGiven>
SPARKFP4_INLINE void scale_strip(const unsigned char *source, const float *block_scales, float global_scale,
                                 unsigned char *scales, typename Isa::Int *largest, Prepared<Isa, Type> *strip) {
  typename Isa::Int amax = load_prepared<Isa, Type>(source, block_scales, strip);
  *largest = Isa::max_u32(*largest, amax);
  Factors<Isa> block;
  if constexpr (kGiven) {
    block = given_factors<Isa, kRecipe>(scales, global_scale);
  } else {
    block = factors<Isa, kRecipe, Type>(widen_low<Isa, Type>(amax), 6.0f, global_scale);
    Isa::store_bytes(scales, block.bytes);
  }

  strip->d = block.d;
}

// Writes a strip's codes; gives its squares where kSums is true.
template <typename Isa, typename Type, bool kSums>
SPARKFP4_INLINE Squares<Isa> finish_elements(const Prepared<Isa, Type> &strip, unsigned char *packed) {
  constexpr int kVectors = Layout<Type>::kVectors;
  typename Isa::Int codes[kVectors];
#pragma GCC unroll 16
  for (int j = 0; j < kVectors; j++) {
    codes[j] = encode_vector<Isa, Type>(strip.x[j], strip.bits);
  }

  Isa::store_pairs(packed, pack_half<Isa, Type>(codes), pack_half<Isa, Type>(codes + kVectors / 2));
  if constexpr (!kSums) {
    return {Isa::set_float(0), Isa::set_float(0)};
  } else if constexpr (std::is_same_v<Type, E4m3>) {
    bool shifted = are_shifted_floats<Isa>(strip.x) &&
                   Isa::all(Isa::less(strip.source_scale, Isa::set_float(kMaxShiftedScale)));
    return shifted ? sum_squares<Isa, Type, true>(strip, codes) : sum_squares<Isa, Type, false>(strip, codes);
  } else {
    return sum_squares<Isa, Type, false>(strip, codes);
  }
}

template <typename Isa, typename Type, bool kSums>
SPARKFP4_INLINE Squares<Isa> finish_nibbles(const Prepared<Isa, Type> &strip, const unsigned char *source,
                                            unsigned char *packed) {
  using Int = typename Isa::Int;
  Int x[2] = {Isa::load(source), Isa::load(source + 4 * Isa::kWidth)};
  Int codes[2];
  encode_nibbles<Isa>(x, strip.tables, codes);
  Isa::store(packed, codes[0]);
  Isa::store(packed + 4 * Isa::kWidth, codes[1]);
  if constexpr (!kSums) {
    return {Isa::set_float(0), Isa::set_float(0)};
  } else {
    Int halves[2];
    Isa::split_pairs(codes[0], codes[1], halves);
    return are_squares_exact<Isa, Type>(strip.source_scale) ? sum_squares_of_nibbles<Isa, Type, true>(strip, halves)
                                                            : sum_squares_of_nibbles<Isa, Type, false>(strip, halves);
  }
}

// Writes a strip's codes and adds its errors to the lanes from lane on.
template <typename Isa, typename Type, bool kSums>
SPARKFP4_INLINE void finish_strip(const Prepared<Isa, Type> &strip, const unsigned char *source, unsigned char *packed,
                                  ErrorLanes *sums, int lane) {
  Squares<Isa> total;
  if constexpr (kNibbles<Type>) {
    total = finish_nibbles<Isa, Type, kSums>(strip, source, packed);
  } else {
    total = finish_elements<Isa, Type, kSums>(strip, packed);
  }

  if constexpr (kSums) {
    Isa::accumulate(sums->squares + lane, total.weight);
    Isa::accumulate(sums->errors + lane, total.error);
  }
}

// Encodes up to kGroup strips, the first of which has lane 0, and raises largest. Each step is a long chain of
// operations, the first with a division in it: strip by strip the processor would wait, with more operations at hand
// than it can keep back.
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

    // What is written is read from memory first.
    for (int j = 0; j < Isa::kWidth * kPackedBlock; j += 64) {
      __builtin_prefetch(group.packed + i * Isa::kWidth * kPackedBlock + kPrefetch / 2 + j, 1);
    }

    const float *block_scales = Type::kCodes ? group.block_scales + i * Isa::kWidth : nullptr;
    unsigned char *scales = group.scales + i * Isa::kWidth;
    if constexpr (kSearched) {
      choose_scales<Isa, kRecipe, Type>(group, i * Isa::kWidth, source, block_scales, scales);
    }

    scale_strip<Isa, kRecipe, Type, kSearched>(source, block_scales, group.global_scale, scales, largest, &strips[i]);
    // Where the source is wider, all loads at once would wait for the memory.
    if constexpr (!Type::kCodes) {
      exact &= find_thresholds<Isa, Type>(&strips[i]);
    }
  }

  for (int i = 0; Type::kCodes && i < count; i++) {
    exact &= find_thresholds<Isa, Type>(&strips[i]);
  }

  if (!exact) {
    kScalarKernel.encode[kRecipe][Type::kSource](group);
    return;
  }

  for (int i = 0; i < count; i++) {
    finish_strip<Isa, Type, kSums>(strips[i], group.source + i * kStripBytes,
                                   group.packed + i * Isa::kWidth * kPackedBlock, group.sums,
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
    bool looked_up = false;
    if constexpr (kNibbles<Type> && !kSearched) {
      looked_up = group.tables != nullptr && encode_by_tables<Isa, kRecipe, Type, kSums, kGroup>(group);
    }

    if (!looked_up) {
      encode_group<Isa, kRecipe, Type, kSums, kSearched>(group, &largest);
    }

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

// Groups of E4M3 blocks that share scales, and all others by the way of all sources.
template <typename Isa, sparkfp4_recipe kRecipe, bool kSums>
static uint32_t encode_shared(const EncodeTask &task) {
  constexpr int kGroupBlocks = kGroup * Isa::kWidth;
  EncodeTask group = task;
  group.blocks = kGroupBlocks;
  float block_scales[kGroupBlocks];
  group.block_scales = block_scales;
  typename Isa::Int largest = Isa::set(0);
  ErrorLanes lanes = {};
  if (kSums) {
    order_lanes<Isa>(*task.sums, &lanes, false);
  }

  // A group is loaded before the one in front of it is finished: each step waits for a long chain of operations.
  SharedStrip<Isa> strips[2][kGroup];
  int64_t left = task.blocks;
  if (left >= kGroupBlocks) {
    load_shared_group<Isa, kGroup>(group, strips[0]);
  }

  for (int i = 0; left >= kGroupBlocks; left -= kGroupBlocks, i ^= 1) {
    bool known = load_shared_entries<Isa, kRecipe, kGroup>(group, strips[i]);
    EncodeTask next = group;
    next.source += kGroupBlocks * E4m3::kBlockBytes;
    next.e4m3_offsets += kGroupBlocks;
    next.packed += kGroupBlocks * kPackedBlock;
    next.scales += kGroupBlocks;
    if (left >= 2 * kGroupBlocks) {
      load_shared_group<Isa, kGroup>(next, strips[i ^ 1]);
    }

    if (known) {
      finish_shared_group<Isa, kSums, kGroup>(group, strips[i], &lanes);
    } else {
      if (kSums) {
        order_lanes<Isa>(lanes, task.sums, true);
      }

      spread_shared_scales(group, kGroupBlocks, block_scales);
      encode_group<Isa, kRecipe, E4m3, kSums, false>(group, &largest);
      if (kSums) {
        order_lanes<Isa>(*task.sums, &lanes, false);
      }
    }

    group = next;
  }

  if (kSums) {
    order_lanes<Isa>(lanes, task.sums, true);
  }

  group.blocks = left;
  spread_shared_scales(group, left, block_scales);
  uint32_t rest = encode_blocks<Isa, kRecipe, E4m3, kSums, false>(group);
  uint32_t main = Isa::reduce_max_u32(largest);
  return rest > main ? rest : main;
}

template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static uint32_t encode(const EncodeTask &task) {
  if constexpr (std::is_same_v<Type, E4m3>) {
    if (task.e4m3_tables != nullptr) {
      return task.sums == nullptr ? encode_shared<Isa, kRecipe, false>(task) : encode_shared<Isa, kRecipe, true>(task);
    }
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
          {e4m3_runs_to_bf16<Isa>, nibble_runs_to_bf16<Isa, Int4>, nibble_runs_to_bf16<Isa, E2m1>},
          code_squares<Isa>};
}

}  // namespace sparkfp4
