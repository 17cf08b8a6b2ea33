// The encode to the nearest of E4M3 blocks that share scales: e4m3_tables.h.
//
// Of a block's elements only the magnitude of the largest is looked at, to find the block's entry in its scale's table.
// Its sixteen codes are then told by four thresholds, for E4M3 has eight magnitudes an octave and E2M1 two codes, which
// begin at the same places of every octave from 1.25 on: with `last` the last magnitude below code 3,
// (m - last + 7) / 8 of its whole steps are codes, and as many from code 4's on.
//
// Lanes have the order in which whole vectors of blocks are transposed: lane 4q + i is of block kQuarters * i + q.
#pragma once

#include "e4m3_tables.h"
#include "squares.h"

namespace sparkfp4 {

template <typename Isa>
constexpr int block_of_lane(int lane) {
  return lane % 4 * (Isa::kWidth / 4) + lane / 4;
}

// A strip between its steps. Vectors hold the even elements of the first half, the odd ones, and those of the second.
template <typename Isa>
struct SharedStrip {
  typename Isa::Int x[kCodeVectors];
  typename Isa::Int doubled[kCodeVectors];  // without the sign, times 2
  typename Isa::Int thresholds;
  typename Isa::Int d;
  typename Isa::Int scales;
  typename Isa::Int source_scale;  // as its entry has it
  alignas(64) uint32_t places[Isa::kWidth];  // of the blocks' entries
  bool normal;  // no magnitude is zero or subnormal
};

// All bytes of a lane.
constexpr uint32_t in_all_bytes(uint32_t byte) { return 0x01010101 * byte; }

// kFilled entries from first on.
template <typename Isa, sparkfp4_recipe kRecipe>
static void fill_entries(E4m3Table *table, uint32_t first, float global_scale) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  // As strips' entries are, so that the transposition that takes those apart makes these.
  static constexpr unsigned char kByQuarters[2][16] = {{0, 2, 4, 6, 1, 3, 5, 7},
                                                       {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}};
  bool scaled = table->source_scale >= kMinScale && table->source_scale < kMaxShiftedScale;
  Float scale = Isa::set_float(scaled ? table->source_scale : 1.0f);
  for (uint32_t from = first; from < first + E4m3Table::kFilled; from += Isa::kWidth) {
    Int codes = Isa::add_int(Isa::load_bytes(kByQuarters[Isa::kWidth == 16]), Isa::set(from));
    // NaN for the largest number: as 480 it would be out of the range of the shorter way of all other thresholds.
    Int numbers = Isa::min_u32(codes, Isa::set(0x7e));
    Float amax = Isa::mul(e4m3_value<Isa>(Isa::template shift_left<20>(numbers)), scale);
    Factors<Isa> block = factors<Isa, kRecipe, E4m3>(amax, 6.0f, global_scale);
    Int last[kThresholds];
    thresholds_of_e4m3<Isa>(block.d, scale, last);

    // What is not 0 where a code begins at another place of another octave, where magnitudes are subnormal, where an
    // octave more would be another code, or where the largest is NaN.
    Int wrong = Isa::bit_xor(last[5], Isa::add_u8(last[3], Isa::set(in_all_bytes(8))));
    wrong = Isa::bit_or(wrong, Isa::bit_xor(last[6], Isa::add_u8(last[4], Isa::set(in_all_bytes(8)))));
    wrong = Isa::bit_or(wrong, Isa::bit_xor(last[7], Isa::add_u8(last[3], Isa::set(in_all_bytes(16)))));
    wrong = Isa::bit_or(wrong, Isa::sub_saturated(Isa::set(in_all_bytes(8)), last[1]));
    wrong = Isa::bit_or(wrong, Isa::sub_saturated(codes, Isa::add_u8(last[4], Isa::set(in_all_bytes(16)))));
    wrong = Isa::bit_or(wrong, Isa::sub_saturated(codes, Isa::set(0x7e)));
    wrong = Isa::bit_or(Isa::bit_and(wrong, Isa::set(0xff)), Isa::set(scaled ? 0 : 1));
    auto known = Isa::both(Isa::less_int(wrong, Isa::set(1)),
                           Isa::both(Isa::less_equal(Isa::set_float(kMinScale), block.d),
                                     Isa::less_equal(block.d, Isa::set_float(kMaxScale))));
    Int low = Isa::bit_or(Isa::bit_and(last[1], Isa::set(0xff)), Isa::bit_and(last[2], Isa::set(0xff00)));
    Int high = Isa::bit_or(Isa::bit_and(last[3], Isa::set(0xff0000)), Isa::bit_and(last[4], Isa::set(0xff000000)));
    Int thresholds = Isa::add_u8(Isa::bit_or(low, high), Isa::set(0xf9f90101));
    Int scales = Isa::select_int(known, Isa::bit_or(block.bytes, Isa::set(E4m3Entry::kKnown)),
                                 Isa::set(E4m3Entry::kUnfit));
    Int shifted_scale = Isa::as_int(Isa::mul(scale, Isa::set_float(0x1p120f)));
    Int lanes[4] = {Isa::add_u8(thresholds, thresholds), Isa::as_int(block.d), scales, shifted_scale};
    Int entries[4];
    Isa::transpose_quarters(lanes, entries);
    for (int i = 0; i < 4; i++) {
      Isa::store(reinterpret_cast<unsigned char *>(table->entries + from) + 4 * Isa::kWidth * i, entries[i]);
    }
  }

  table->filled |= 1u << first / E4m3Table::kFilled;
}

template <typename Isa>
SPARKFP4_INLINE void load_entries(const unsigned char *tables, SharedStrip<Isa> *strip) {
  static_assert(sizeof(E4m3Entry) == 16);
  typename Isa::Int rows[4];
  typename Isa::Int lanes[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    rows[i] = Isa::load_quarters(tables, strip->places + i);
  }

  Isa::transpose_quarters(rows, lanes);
  strip->thresholds = lanes[0];
  strip->d = lanes[1];
  strip->scales = lanes[2];
  strip->source_scale = lanes[3];
}

template <typename Isa>
SPARKFP4_INLINE void load_shared(const unsigned char *source, const uint32_t *offsets, SharedStrip<Isa> *strip) {
  using Int = typename Isa::Int;
  Int rows[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    rows[i] = Isa::split_bytes(Isa::load(source + i * 4 * Isa::kWidth));
  }

  Int x[kCodeVectors];
  Isa::transpose_quarters(rows, x);
  Int m[kCodeVectors];
#pragma GCC unroll 4
  for (int j = 0; j < kCodeVectors; j++) {
    m[j] = Isa::add_u8(x[j], x[j]);
    strip->x[j] = x[j];
    strip->doubled[j] = m[j];
  }

  Int least = Isa::min_u8(Isa::min_u8(m[0], m[1]), Isa::min_u8(m[2], m[3]));
  strip->normal = !Isa::any_u8_below(least, 16);
  Int most = Isa::max_u8(Isa::max_u8(m[0], m[1]), Isa::max_u8(m[2], m[3]));
  most = Isa::max_u8(most, Isa::template shift_right<16>(most));
  most = Isa::max_u8(most, Isa::template shift_right<8>(most));
  Int places = Isa::bit_and(Isa::template shift_left<3>(most), Isa::set(0xff << 3));
  Int tables_of = Isa::by_quarters(Isa::load(reinterpret_cast<const unsigned char *>(offsets)));
  Isa::store(reinterpret_cast<unsigned char *>(strip->places), Isa::add_int(places, tables_of));
}

// The codes of all bytes, in their high halves, with anything below.
template <typename Isa, bool kNormal>
SPARKFP4_INLINE typename Isa::Int shared_codes(typename Isa::Int x, typename Isa::Int doubled,
                                               const typename Isa::Int *thresholds) {
  using Int = typename Isa::Int;
  Int of_3 = Isa::bit_and(Isa::sub_saturated(doubled, thresholds[2]), Isa::set(0xf0f0f0f0));
  Int code = Isa::add_u8(of_3, Isa::sub_saturated(doubled, thresholds[3]));
  code = Isa::add_u8_from(code, doubled, thresholds[0], 0x10);
  code = Isa::add_u8_from(code, doubled, thresholds[1], 0x10);
  if constexpr (!kNormal) {
    // Zero has no sign.
    x = Isa::keep_where_not_0(x, doubled);
  }

  return Isa::with_sign(code, x);
}

// Element kElement and the one 8 behind it.
template <typename Isa, bool kNormal, int kElement>
SPARKFP4_INLINE Squares<Isa> two_shared_squares(const typename Isa::Int *doubled, const typename Isa::Int *codes,
                                                typename Isa::Float scale, typename Isa::Float d) {
  using Int = typename Isa::Int;
  constexpr int kByte = kElement / 2;
  Squares<Isa> both[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    // The magnitude to the upper word, then at bit 20 of the lane, with nothing below.
    Int word = doubled[kElement % 2 + 2 * i];
    if constexpr (kByte < 2) {
      word = Isa::template shift_left<16>(word);
    }

    Int shifted = Isa::multiply_byte_pairs(word, Isa::set(kByte % 2 == 0 ? 0x00080000 : 0x08000000));
    typename Isa::Float value = kNormal ? Isa::as_float(shifted) : e4m3_value<Isa>(shifted);
    typename Isa::Float w = Isa::mul(value, scale);
    typename Isa::Float nearest = Isa::mul(Isa::e2m1_magnitude(Isa::template shift_right<4 * kElement>(codes[i])), d);
    typename Isa::Float error = Isa::sub(w, nearest);
    both[i] = {Isa::mul(w, w), Isa::mul(error, error)};
  }

  return plus<Isa>(both[0], both[1]);
}

template <typename Isa, bool kNormal>
SPARKFP4_INLINE Squares<Isa> shared_squares(const SharedStrip<Isa> &strip, const typename Isa::Int *codes) {
  using Float = typename Isa::Float;
  Float d = Isa::as_float(strip.d);
  Float scale = Isa::as_float(strip.source_scale);
  if constexpr (!kNormal) {
    scale = Isa::mul(scale, Isa::set_float(0x1p-120f));
  }

  const typename Isa::Int *m = strip.doubled;
  auto s04 = plus<Isa>(two_shared_squares<Isa, kNormal, 0>(m, codes, scale, d),
                       two_shared_squares<Isa, kNormal, 4>(m, codes, scale, d));
  auto s26 = plus<Isa>(two_shared_squares<Isa, kNormal, 2>(m, codes, scale, d),
                       two_shared_squares<Isa, kNormal, 6>(m, codes, scale, d));
  auto even = plus<Isa>(s04, s26);
  auto s15 = plus<Isa>(two_shared_squares<Isa, kNormal, 1>(m, codes, scale, d),
                       two_shared_squares<Isa, kNormal, 5>(m, codes, scale, d));
  auto s37 = plus<Isa>(two_shared_squares<Isa, kNormal, 3>(m, codes, scale, d),
                       two_shared_squares<Isa, kNormal, 7>(m, codes, scale, d));
  return plus<Isa>(even, plus<Isa>(s15, s37));
}

// Writes a strip's codes; gives its squares where kSums is true.
template <typename Isa, bool kNormal, bool kSums>
SPARKFP4_INLINE Squares<Isa> finish_shared(const SharedStrip<Isa> &strip, unsigned char *packed) {
  using Int = typename Isa::Int;
  Int all = strip.thresholds;
  Int thresholds[4] = {Isa::template repeat_byte<0>(all), Isa::template repeat_byte<1>(all),
                       Isa::template repeat_byte<2>(all), Isa::template repeat_byte<3>(all)};
  Int high[kCodeVectors];
#pragma GCC unroll 4
  for (int j = 0; j < kCodeVectors; j++) {
    high[j] = shared_codes<Isa, kNormal>(strip.x[j], strip.doubled[j], thresholds);
  }

  // Eight of a block in order, the first in the lowest bits.
  Int codes[2] = {Isa::join_high_halves(high[0], high[1]), Isa::join_high_halves(high[2], high[3])};
  Isa::store_pairs_by_quarters(packed, codes[0], codes[1]);
  if constexpr (kSums) {
    return shared_squares<Isa, kNormal>(strip, codes);
  } else {
    return {Isa::set_float(0), Isa::set_float(0)};
  }
}

// Fills what a group needs of tables and has not been filled yet. Whether all blocks have entries then.
template <typename Isa, sparkfp4_recipe kRecipe, int kStrips>
static bool find_entries(const EncodeTask &group, SharedStrip<Isa> *strips) {
  for (int i = 0; i < kStrips; i++) {
    // Of a strip's blocks that miss entries the first one's often are all that others miss.
    uint32_t missing = Isa::lanes(Isa::less_int(strips[i].scales, Isa::set(1)));
    while (missing != 0) {
      int lane = __builtin_ctz(missing);
      uint32_t offset = group.e4m3_offsets[i * Isa::kWidth + block_of_lane<Isa>(lane)];
      E4m3Table *table = reinterpret_cast<E4m3Table *>(group.e4m3_tables + offset);
      uint32_t magnitude = (strips[i].places[lane] - offset) / sizeof(E4m3Entry);
      fill_entries<Isa, kRecipe>(table, magnitude / E4m3Table::kFilled * E4m3Table::kFilled, group.global_scale);
      load_entries<Isa>(group.e4m3_tables, &strips[i]);
      missing = Isa::lanes(Isa::less_int(strips[i].scales, Isa::set(1)));
    }

    if (Isa::any_0(Isa::bit_and(strips[i].scales, Isa::set(E4m3Entry::kKnown)))) {
      return false;
    }

    if (i + 1 < kStrips) {
      load_entries<Isa>(group.e4m3_tables, &strips[i + 1]);
    }
  }

  return true;
}

// The scales of blocks as the way of all sources has them.
static inline void spread_shared_scales(const EncodeTask &task, int64_t blocks, float *block_scales) {
  for (int64_t i = 0; i < blocks; i++) {
    const auto *table = reinterpret_cast<const E4m3Table *>(task.e4m3_tables + task.e4m3_offsets[i]);
    block_scales[i] = table->source_scale;
  }
}

// The lanes of a task's sums in the strips' order, and back.
template <typename Isa>
SPARKFP4_INLINE void order_lanes(const ErrorLanes &from, ErrorLanes *to, bool back) {
  for (int i = 0; i < kLanes; i++) {
    int block = i / Isa::kWidth * Isa::kWidth + block_of_lane<Isa>(i % Isa::kWidth);
    to->squares[back ? block : i] = from.squares[back ? i : block];
    to->errors[back ? block : i] = from.errors[back ? i : block];
  }
}

// The first step with a group of strips: which entries its blocks have.
template <typename Isa, int kStrips>
SPARKFP4_INLINE void load_shared_group(const EncodeTask &group, SharedStrip<Isa> *strips) {
  constexpr int kStripBytes = Isa::kWidth * kBlock;
  for (int i = 0; i < kStrips; i++) {
    const unsigned char *source = group.source + i * kStripBytes;
#pragma GCC unroll 4
    for (int j = 0; j < kStripBytes; j += 64) {
      __builtin_prefetch(source + kPrefetch + j);
    }

    // What is written is read from memory first.
#pragma GCC unroll 2
    for (int j = 0; j < Isa::kWidth * kPackedBlock; j += 64) {
      __builtin_prefetch(group.packed + i * Isa::kWidth * kPackedBlock + kPrefetch / 2 + j, 1);
    }

    load_shared<Isa>(source, group.e4m3_offsets + i * Isa::kWidth, &strips[i]);
  }
}

// The second step: whether all blocks have entries, which are then loaded. Not those whose largest magnitude or whose
// scale is out of the ordinary, nor those with NaN.
template <typename Isa, sparkfp4_recipe kRecipe, int kStrips>
SPARKFP4_INLINE bool load_shared_entries(const EncodeTask &group, SharedStrip<Isa> *strips) {
  typename Isa::Int known = Isa::set(E4m3Entry::kKnown);
  for (int i = 0; i < kStrips; i++) {
    load_entries<Isa>(group.e4m3_tables, &strips[i]);
    known = Isa::bit_and(known, strips[i].scales);
  }

  return !Isa::any_0(known) || find_entries<Isa, kRecipe, kStrips>(group, strips);
}

// The last step with a group, the first of whose strips has lane 0.
template <typename Isa, bool kSums, int kStrips>
SPARKFP4_INLINE void finish_shared_group(const EncodeTask &group, const SharedStrip<Isa> *strips, ErrorLanes *lanes) {
  typename Isa::Int scales[kStrips];
#pragma GCC unroll 4
  for (int i = 0; i < kStrips; i++) {
    scales[i] = strips[i].scales;
  }

  Isa::store_bytes_by_quarters(group.scales, scales);
  for (int i = 0; i < kStrips; i++) {
    unsigned char *packed = group.packed + i * Isa::kWidth * kPackedBlock;
    Squares<Isa> total = strips[i].normal ? finish_shared<Isa, true, kSums>(strips[i], packed)
                                          : finish_shared<Isa, false, kSums>(strips[i], packed);
    if constexpr (kSums) {
      Isa::accumulate(lanes->squares + i * Isa::kWidth % kLanes, total.weight);
      Isa::accumulate(lanes->errors + i * Isa::kWidth % kLanes, total.error);
    }
  }
}

}  // namespace sparkfp4
