// The vector tiers' way of sources of few codes: blocks whose tables are there (code_tables.h) are looked up, and
// nothing of them is computed but the sums.
#pragma once

#include <cstddef>

#include "code_tables.h"
#include "codes.h"

namespace sparkfp4 {

// What the first step with a strip finds, a lane each block.
template <typename Isa>
struct StripOfCodes {
  typename Isa::Int largest;  // the magnitude of its largest code
  typename Isa::Int even;     // the sum of the squares of its even codes, of E2M1 of all of them, in quarters
  typename Isa::Int odd;      // of INT4's odd codes
};

// What an instruction set has of its own for tables, whose offsets are in bytes:
//
//   kSlots: how many errors of a table it tells apart
//   kIndexBytes: of what prepare() writes of a strip
//   largest_of_pairs(low, high): of blocks of two lanes, byte by byte
//   prepare<Type>(half_bytes, indices): a StripOfCodes
//   load_codes(tables, offsets): the tables' codes of every other block from the first on, 16 bytes each
//   store_second_bytes(lanes, to): of four vectors
//   add_lanes(terms, blocks, sums): floats to the doubles of their lanes
//   errors<Type>(tables, offsets, source, indices): the sums of a strip's blocks by the fixed tree, a lane each
template <typename Isa>
struct TableOps;

constexpr unsigned char kInt4Magnitudes[16] = {8, 7, 6, 5, 4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7};

// The halves of each byte.
template <typename Isa>
struct HalfBytes {
  typename Isa::Int low[2];
  typename Isa::Int high[2];
};

template <typename Isa>
SPARKFP4_INLINE HalfBytes<Isa> load_half_bytes(const unsigned char *source) {
  typename Isa::Int mask = Isa::set(0x0f0f0f0f);
  HalfBytes<Isa> x;
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    typename Isa::Int both = Isa::load(source + 4 * Isa::kWidth * i);
    x.low[i] = Isa::bit_and(both, mask);
    x.high[i] = Isa::bit_and(Isa::template shift_right<4>(both), mask);
  }

  return x;
}

template <typename Isa, typename Type>
SPARKFP4_INLINE HalfBytes<Isa> magnitudes(const HalfBytes<Isa> &x) {
  HalfBytes<Isa> magnitude;
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    if constexpr (Type::kSource == Int4::kSource) {
      magnitude.low[i] = Isa::lookup(kInt4Magnitudes, x.low[i]);
      magnitude.high[i] = Isa::lookup(kInt4Magnitudes, x.high[i]);
    } else {
      magnitude.low[i] = Isa::bit_and(x.low[i], Isa::set(0x07070707));
      magnitude.high[i] = Isa::bit_and(x.high[i], Isa::set(0x07070707));
    }
  }

  return magnitude;
}

// In the lowest byte of each lane the largest one.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Int largest_byte(typename Isa::Int x) {
  x = Isa::max_u8(x, Isa::template shift_right<16>(x));
  return Isa::max_u8(x, Isa::template shift_right<8>(x));
}

template <typename Isa>
SPARKFP4_INLINE typename Isa::Int largest_magnitude(const HalfBytes<Isa> &magnitude) {
  typename Isa::Int any = TableOps<Isa>::largest_of_pairs(Isa::max_u8(magnitude.low[0], magnitude.high[0]),
                                                          Isa::max_u8(magnitude.low[1], magnitude.high[1]));
  return Isa::bit_and(largest_byte<Isa>(any), Isa::set(kKeyMagnitude));
}

// Where the tables of a group's blocks are.
template <int kBlocks>
struct Places {
  alignas(64) uint32_t keys[kBlocks];
  alignas(64) uint32_t offsets[kBlocks];
};

template <typename Isa>
SPARKFP4_INLINE typename Isa::Int load_lanes(const uint32_t *from) {
  return Isa::load(reinterpret_cast<const unsigned char *>(from));
}

template <typename Isa>
SPARKFP4_INLINE void store_lanes(uint32_t *to, typename Isa::Int x) {
  Isa::store(reinterpret_cast<unsigned char *>(to), x);
}

// Of the strip whose first block is at `first`.
template <typename Isa, typename Type, int kBlocks>
SPARKFP4_INLINE void find_places(typename Isa::Int largest, typename Isa::Int scale, int first, Places<kBlocks> *at) {
  using Int = typename Isa::Int;
  static_assert(sizeof(BlockTable) == 1 << 6, "a place is an offset in 64 bytes");
  Int of_scale = Isa::bit_and(Isa::template shift_right<kPlaceShift<Type> - 6>(scale), Isa::set(kScaleOfPlace << 6));
  Int of_largest = Isa::template shift_left<6>(largest);
  store_lanes<Isa>(at->keys + first, Isa::bit_or(scale, largest));
  store_lanes<Isa>(at->offsets + first, Isa::add_int(of_scale, of_largest));
}

// What becomes of each code, by divisions. False where the source's scale or d is out of range: there weights and
// squares may be rounded, and quotients of zero be none.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
__attribute__((noinline)) static bool make_table(uint32_t key, float global_scale, BlockTable *table) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  constexpr bool kInt4 = Type::kSource == Int4::kSource;
  static constexpr float kInt4Values[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  static constexpr float kE2m1Values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                            -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  const float *values = kInt4 ? kInt4Values : kE2m1Values;
  float source_scale = bits_as<float>(key & ~kKeyMagnitude);
  uint32_t largest = key & kKeyMagnitude;
  float value = kInt4 ? static_cast<float>(largest) : kE2m1Values[largest];
  float scale = block_scale<kRecipe, Type>(value * source_scale, 6.0f, global_scale);
  float factor = dequant_factor<kRecipe>(scale, global_scale);
  if (!(source_scale >= kMinScale && source_scale <= kMaxScale && factor >= kMinScale && factor <= kMaxScale)) {
    return false;
  }

  Float d = Isa::set_float(factor);
  Int bits[kThresholds];
  for (int i = 0; i < kThresholds; i++) {
    // A tie goes to the even code, which the second of two is.
    bits[i] = Isa::set(bits_as<uint32_t>(kMidpoints[i]) - (i > 0 && i % 2 == 0 ? 1 : 0));
  }

  float errors[16];
  for (int i = 0; i < 16; i += Isa::kWidth) {
    Float w = Isa::mul(Isa::load_floats(values + i), Isa::set_float(source_scale));
    Float x = Isa::divide(w, d);
    Int code = Isa::code_32(Isa::as_int(x), Isa::as_int(Isa::abs(x)), bits);
    Isa::store_bytes(table->codes + i, code);
    Float error = Isa::sub(Isa::abs(w), Isa::mul(Isa::e2m1_magnitude(code), d));
    Isa::store_floats(errors + i, Isa::mul(error, error));
  }

  // By magnitude.
  std::memcpy(table->errors, errors + (kInt4 ? 8 : 0), 8 * sizeof(float));
  if (kInt4) {
    table->errors[8 % TableOps<Isa>::kSlots] = errors[0];
  }

  table->key = key | static_cast<uint32_t>(e4m3_byte(scale)) << 8;
  return true;
}

// Makes the tables that are not there, of which a later one may take the place of an earlier one. False where one
// cannot be made, or where too many had to be of late.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, int kBlocks>
__attribute__((noinline)) static bool make_tables(const Places<kBlocks> &at, int64_t blocks, float global_scale,
                                                  CodeTables *tables) {
  for (int64_t i = 0; i < blocks; i++) {
    uint32_t key = at.keys[i];
    BlockTable *table = &tables->tables[at.offsets[i] / sizeof(BlockTable)];
    if ((table->key & ~kKeyByte) != key) {
      if (tables->credit <= 0 || !make_table<Isa, kRecipe, Type>(key, global_scale, table)) {
        return false;
      }

      tables->credit--;
    }
  }

  return true;
}

// Writes the scales of a group of whose tables these are the keys; false where one is another block's.
template <typename Isa, int kBlocks>
SPARKFP4_INLINE bool write_scales(const Places<kBlocks> &at, const uint32_t *found, int64_t blocks,
                                  unsigned char *scales) {
  using Int = typename Isa::Int;
  Int different = Isa::set(0);
  for (int64_t i = 0; i < blocks; i += Isa::kWidth) {
    different = Isa::bit_or(different, Isa::bit_xor(load_lanes<Isa>(found + i), load_lanes<Isa>(at.keys + i)));
  }

  if (blocks == kBlocks) {
    static_assert(kBlocks == 4 * Isa::kWidth, "four vectors");
    TableOps<Isa>::store_second_bytes(found, scales);
  } else {
    for (int64_t i = 0; i < blocks; i += Isa::kWidth) {
      Int key = load_lanes<Isa>(found + i);
      Isa::store_bytes(scales + i, Isa::bit_and(Isa::template shift_right<8>(key), Isa::set(0xff)));
    }
  }

  return Isa::reduce_max_u32(Isa::bit_and(different, Isa::set(~kKeyByte))) == 0;
}

// The keys of a strip's tables.
template <typename Isa>
SPARKFP4_INLINE void load_keys(const unsigned char *tables, const uint32_t *offsets, uint32_t *keys) {
#pragma GCC unroll 16
  for (int i = 0; i < Isa::kWidth; i++) {
    uint64_t offset = offsets[i];
    // One by one: a compiler that makes vectors of this takes twice as long.
    asm("" : "+r"(offset));
    std::memcpy(keys + i, tables + offset + offsetof(BlockTable, key), sizeof keys[i]);
  }
}

// The squares of the weights of a strip's blocks.
template <typename Isa, typename Type>
SPARKFP4_INLINE typename Isa::Float sum_weights(const StripOfCodes<Isa> &strip, typename Isa::Float scale) {
  using Float = typename Isa::Float;
  Float square = Isa::mul(scale, scale);
  if constexpr (Type::kSource == Int4::kSource) {
    // Two products and their sum are the only ones to be rounded.
    return Isa::add(Isa::mul(Isa::to_float(strip.even), square), Isa::mul(Isa::to_float(strip.odd), square));
  } else {
    return Isa::mul(Isa::to_float(strip.even), Isa::mul(square, Isa::set_float(0.25f)));
  }
}

// A byte a code, in their order: of each half strip those of every other block, and of the others.
template <typename Isa>
SPARKFP4_INLINE void store_codes(const HalfBytes<Isa> &x, unsigned char *codes) {
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    Isa::store(codes + 8 * Isa::kWidth * i, Isa::unpack_low(x.low[i], x.high[i]));
    Isa::store(codes + 8 * Isa::kWidth * i + 4 * Isa::kWidth, Isa::unpack_high(x.low[i], x.high[i]));
  }
}

// Writes a strip's E2M1 codes.
template <typename Isa>
SPARKFP4_INLINE void look_up_codes(const unsigned char *codes, const unsigned char *tables, const uint32_t *offsets,
                                   unsigned char *packed) {
  using Int = typename Isa::Int;
  Int pair = Isa::set(0x10011001);
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    const uint32_t *half = offsets + Isa::kWidth / 2 * i;
    const unsigned char *of_half = codes + 8 * Isa::kWidth * i;
    Int first = Isa::lookup(TableOps<Isa>::load_codes(tables, half), Isa::load(of_half));
    Int second = Isa::lookup(TableOps<Isa>::load_codes(tables, half + 1), Isa::load(of_half + 4 * Isa::kWidth));
    Isa::store(packed + 4 * Isa::kWidth * i,
               Isa::pack_bytes(Isa::multiply_byte_pairs(first, pair), Isa::multiply_byte_pairs(second, pair)));
  }
}

// A group between its steps. What the second one reads of it comes from memory, and not from registers that would have
// to be shuffled.
template <typename Isa, int kStrips>
struct TabledGroup {
  static constexpr int kBlocks = kStrips * Isa::kWidth;
  Places<kBlocks> at;
  alignas(64) uint32_t found[kBlocks];
  alignas(64) unsigned char codes[kBlocks * kBlock];
  alignas(64) unsigned char indices[kStrips * TableOps<Isa>::kIndexBytes];
  alignas(64) float weights[kBlocks];
  alignas(64) float errors[kBlocks];
};

// How many groups are encoded without tables once those were of no use, and how many may then be made.
constexpr int32_t kPause = 1024;
constexpr int32_t kCreditAfterPause = 128;

// The second step with a group, whose tables are those of its blocks or others': false, for its outcome to be thrown
// away, where one is another's.
template <typename Isa, typename Type, bool kSums, int kStrips>
SPARKFP4_INLINE bool look_up_strips(const EncodeTask &group, TabledGroup<Isa, kStrips> *x) {
  using Ops = TableOps<Isa>;
  constexpr int kStripBytes = Isa::kWidth * kPackedBlock;
  const unsigned char *tables = reinterpret_cast<const unsigned char *>(group.tables->tables);
  int count = static_cast<int>(group.blocks / Isa::kWidth);
  for (int i = 0; i < count; i++) {
    int first = i * Isa::kWidth;
    // The offsets are read again and again: there are more of them than registers.
    asm volatile("" : : : "memory");
    load_keys<Isa>(tables, x->at.offsets + first, x->found + first);
    asm volatile("" : : : "memory");
    look_up_codes<Isa>(x->codes + first * kBlock, tables, x->at.offsets + first, group.packed + i * kStripBytes);
    if constexpr (kSums) {
      asm volatile("" : : : "memory");
      Isa::store_floats(x->errors + first,
                        Ops::template errors<Type>(tables, x->at.offsets + first, group.source + i * kStripBytes,
                                                   x->indices + i * Ops::kIndexBytes));
    }
  }

  return write_scales<Isa>(x->at, x->found, group.blocks, group.scales);
}

// The same once a table has been missed.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kSums, int kStrips>
__attribute__((noinline)) static bool make_and_look_up(const EncodeTask &group, TabledGroup<Isa, kStrips> *x) {
  CodeTables *tables = group.tables;
  if (make_tables<Isa, kRecipe, Type>(x->at, group.blocks, group.global_scale, tables) &&
      look_up_strips<Isa, Type, kSums>(group, x)) {
    return true;
  }

  tables->credit -= static_cast<int32_t>(group.blocks);
  if (tables->credit <= 0) {
    tables->pause = kPause;
    tables->credit = kCreditAfterPause;
  }

  return false;
}

// The first step with a group: which tables its blocks have, and what needs none.
template <typename Isa, typename Type, bool kSums, int kStrips>
SPARKFP4_INLINE void prepare_strips(const EncodeTask &group, TabledGroup<Isa, kStrips> *x) {
  using Ops = TableOps<Isa>;
  constexpr int kStripBytes = Isa::kWidth * kPackedBlock;
  int count = static_cast<int>(group.blocks / Isa::kWidth);
  __builtin_prefetch(group.scales + kPrefetch / 8, 1);
  for (int i = 0; i < count; i++) {
    int first = i * Isa::kWidth;
    const unsigned char *source = group.source + i * kStripBytes;
    for (int j = 0; j < kStripBytes; j += 64) {
      __builtin_prefetch(source + kPrefetch + j);
      __builtin_prefetch(group.packed + i * kStripBytes + kPrefetch / 2 + j, 1);
    }

    HalfBytes<Isa> half_bytes = load_half_bytes<Isa>(source);
    store_codes<Isa>(half_bytes, x->codes + first * kBlock);
    typename Isa::Float scale = Isa::load_floats(group.block_scales + first);
    typename Isa::Int largest;
    if constexpr (kSums) {
      StripOfCodes<Isa> strip = Ops::template prepare<Type>(half_bytes, x->indices + i * Ops::kIndexBytes);
      largest = strip.largest;
      Isa::store_floats(x->weights + first, sum_weights<Isa, Type>(strip, scale));
    } else {
      largest = largest_magnitude<Isa>(magnitudes<Isa, Type>(half_bytes));
    }

    find_places<Isa, Type>(largest, Isa::as_int(scale), first, &x->at);
  }
}

// Encodes the strips of a group by tables; false, where those are not to be had, for it to be encoded otherwise.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type, bool kSums, int kStrips>
SPARKFP4_INLINE bool encode_by_tables(const EncodeTask &group) {
  CodeTables *tables = group.tables;
  if (tables->pause > 0) {
    tables->pause--;
    return false;
  }

  TabledGroup<Isa, kStrips> x;
  prepare_strips<Isa, Type, kSums>(group, &x);
  if (look_up_strips<Isa, Type, kSums>(group, &x)) {
    tables->credit += tables->credit < kPlaces ? kStrips : 0;
  } else if (!make_and_look_up<Isa, kRecipe, Type, kSums>(group, &x)) {
    return false;
  }

  if constexpr (kSums) {
    TableOps<Isa>::add_lanes(x.weights, group.blocks, group.sums->squares);
    TableOps<Isa>::add_lanes(x.errors, group.blocks, group.sums->errors);
  }

  return true;
}

}  // namespace sparkfp4
