// The scales of a vector of blocks, each chosen by its loss: what search.h does, in lanes.
//
// Losses are found with the product by 1 / d in place of the quotient and with fused products, which is off by less than
// kSlack says. So the least of them tells the scale where the next one is further off. Blocks where it is not, or where
// the bounds of search.h do not hold, go one by one to search.h.
#pragma once

#include "codes.h"
#include "search.h"

#define SPARKFP4_MEMBER __attribute__((always_inline)) inline

namespace sparkfp4 {

// The blocks' weights as binary32: element i of all blocks, then the next. Without signs.
template <typename Isa>
struct WideStrip {
  alignas(64) float w[kBlock * Isa::kWidth];

  typename Isa::Float element(int i) const { return Isa::load_floats(w + i * Isa::kWidth); }
};

// Between these amaxes nothing of a loss leaves the normal range; nor with these weights.
constexpr float kLeastSwept = 0x1p-30f;
constexpr float kMostSwept = 0x1p30f;
constexpr float kLeastSweptWeight = 0x1p-30f;
constexpr float kMostSweptWeight = 0x1p30f;

// Offsets from the nearest scale that are tried: the first always, down to where weights are cut off too much.
constexpr int kHighestOffset = 7;
constexpr int kLowestOffset = -8;

template <typename Isa>
struct Sweep {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  using Mask = typename Isa::Mask;

  const WideStrip<Isa> &strip;
  const float *h;  // as the strip has its elements, or null
  Float amax;
  Float weight;  // sum of h, 16 without
  Float least;
  Float second;
  Int best;

  Sweep(const WideStrip<Isa> &strip, const float *h, Float amax, Float weight)
      : strip(strip),
        h(h),
        amax(amax),
        weight(weight),
        least(Isa::set_float(__builtin_inff())),
        second(Isa::set_float(__builtin_inff())),
        best(Isa::set(0)) {}

  template <bool kWeighted, bool kClamp>
  SPARKFP4_MEMBER Float loss(Float d) const {
    // In quarters, of which all midpoints are whole numbers.
    Float inverse = Isa::mul(Isa::reciprocal(d), Isa::set_float(4.0f));
    Float sums[4];
#pragma GCC unroll 16
    for (int i = 0; i < kBlock; i++) {
      Float w = strip.element(i);
      Float m = Isa::template nearest_of_quarters<kClamp>(Isa::mul(w, inverse));
      Float error = Isa::sub_mul(w, m, d);
      Float factor = error;
      if constexpr (kWeighted) {
        factor = Isa::mul(error, Isa::load_floats(h + i * Isa::kWidth));
      }

      sums[i % 4] = i < 4 ? Isa::mul(error, factor) : Isa::mul_add(error, factor, sums[i % 4]);
    }

    return Isa::add(Isa::add(sums[0], sums[2]), Isa::add(sums[1], sums[3]));
  }

  // Lanes whose scale cannot win, as far as their errors are taken.
  template <bool kWeighted, bool kClamp>
  SPARKFP4_MEMBER void add(Int code, Float d, Mask tried) {
    Float found = Isa::select(tried, loss<kWeighted, kClamp>(d), Isa::set_float(__builtin_inff()));
    auto better = Isa::less(found, least);
    second = Isa::min(second, Isa::max(least, found));
    least = Isa::min(least, found);
    best = Isa::select_int(better, code, best);
  }

  // Sum of the terms that stem from weights above 6 * d.
  template <bool kWeighted>
  SPARKFP4_MEMBER Float cut_off(Float d) const {
    Float most = Isa::mul(d, Isa::set_float(6.0f));
    if constexpr (!kWeighted) {
      Float error = Isa::max(Isa::sub(amax, most), Isa::set_float(0));
      return Isa::mul(error, error);
    } else {
      Float sum = Isa::set_float(0);
      for (int i = 0; i < kBlock; i++) {
        Float error = Isa::max(Isa::sub(strip.element(i), most), Isa::set_float(0));
        sum = Isa::mul_add(Isa::mul(error, error), Isa::load_floats(h + i * Isa::kWidth), sum);
      }

      return sum;
    }
  }

  SPARKFP4_MEMBER Float slack() const {
    Float scaled = Isa::mul(Isa::mul(amax, amax), Isa::set_float(kSlack / 256));
    return Isa::mul_add(least, Isa::set_float(kSlack), Isa::mul(scaled, weight));
  }

  // Lanes in which the next loss is too near to tell.
  SPARKFP4_MEMBER Mask is_close() const { return Isa::less_equal(second, Isa::add(least, slack())); }

  // Lanes with a weight that is all but in the middle of two values under d.
  SPARKFP4_MEMBER Mask is_between(Float d) const {
    Float inverse = Isa::mul(Isa::reciprocal(d), Isa::set_float(4.0f));
    Float quarter = Isa::mul(d, Isa::set_float(0.25f));
    Float beside = Isa::mul(d, Isa::set_float(0x1p-18f));
    Float nearest = beside;
    for (int i = 0; i < kBlock; i++) {
      Float w = strip.element(i);
      Float whole = Isa::round(Isa::mul(w, inverse));
      Float off = Isa::abs(Isa::sub_mul(w, whole, quarter));
      // In the middle itself all scales that have both values take the same.
      nearest = Isa::min(nearest, Isa::select(Isa::equal(off, Isa::set_float(0)), beside, off));
    }

    return Isa::less(nearest, beside);
  }
};

// E4M3 code from 8 on to binary32.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Float normal_e4m3(typename Isa::Int code) {
  return Isa::as_float(Isa::add_int(Isa::template shift_left<20>(code), Isa::set(120u << 23)));
}

template <typename Isa, sparkfp4_recipe kRecipe>
SPARKFP4_INLINE typename Isa::Float factor_of(typename Isa::Float scale, float global_scale) {
  typename Isa::Float global = Isa::set_float(global_scale);
  return kRecipe == SPARKFP4_MODELOPT ? Isa::mul(scale, global) : Isa::divide(scale, global);
}

// The codes of the blocks' scales; in *hard the lanes in which they are not proved. Nearest scales are at least 16.
template <typename Isa, sparkfp4_recipe kRecipe, bool kWeighted>
static typename Isa::Int sweep_strip(Sweep<Isa> sweep, typename Isa::Int nearest, float global_scale,
                                     typename Isa::Mask *hard) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  auto factor = [&](Int code) { return factor_of<Isa, kRecipe>(normal_e4m3<Isa>(code), global_scale); };
  Int largest = Isa::set(kLargestScaleCode + 1);
  for (int offset = kHighestOffset; offset >= 0; offset--) {
    Int code = Isa::add_int(nearest, Isa::set(offset));
    Float d = factor(code);
    if (offset == kHighestOffset && Isa::all(Isa::less(sweep.amax, Isa::mul(d, Isa::set_float(3.49f))))) {
      continue;
    }

    sweep.template add<kWeighted, false>(code, d, Isa::less_int(code, largest));
  }

  typename Isa::Mask open = Isa::less_int(nearest, largest);
  for (int offset = -1; offset >= kLowestOffset; offset--) {
    Int code = Isa::add_int(nearest, Isa::set(static_cast<uint32_t>(offset)));
    Float d = factor(code);
    open = Isa::less_equal(sweep.template cut_off<kWeighted>(d), Isa::add(sweep.least, sweep.slack()));
    // Offset -1 is what 7 is held to.
    if (offset < -1 && Isa::lanes(open) == 0) {
      break;
    }

    sweep.template add<kWeighted, true>(code, d, Isa::less_int(code, largest));
  }

  Float d = factor(sweep.best);
  *hard = Isa::either(Isa::either(open, sweep.is_close()), sweep.is_between(d));
  return sweep.best;
}

// The importance of a strip's blocks, the strip's first block being that of the row; element by element as the weights
// are. Where all of a block's is zero, 1.
template <typename Isa>
static typename Isa::Float load_importance(const EncodeTask &task, int64_t first, WideStrip<Isa> *h) {
  using Float = typename Isa::Float;
  float copy[kBlock * Isa::kWidth];
  const float *from = task.importance + first * kBlock;
  if (first + Isa::kWidth > task.row_blocks) {
    for (int lane = 0; lane < Isa::kWidth; lane++) {
      std::memcpy(copy + lane * kBlock, task.importance + (first + lane) % task.row_blocks * kBlock,
                  kBlock * sizeof copy[0]);
    }

    from = copy;
  }

  typename Isa::Int x[kBlock];
  for (int i = 0; i < 4; i++) {
    Isa::load_transposed(reinterpret_cast<const unsigned char *>(from) + 16 * i, F32::kBlockBytes, x + 4 * i);
  }

  Float sum = Isa::set_float(0);
  for (int i = 0; i < kBlock; i++) {
    sum = Isa::add(sum, Isa::as_float(x[i]));
  }

  auto none = Isa::equal(sum, Isa::set_float(0));
  Float one = Isa::set_float(1.0f);
  for (int i = 0; i < kBlock; i++) {
    Isa::store_floats(h->w + i * Isa::kWidth, Isa::select(none, one, Isa::as_float(x[i])));
  }

  return Isa::select(none, Isa::set_float(kBlock), sum);
}

// The scales of a strip, as the task's search gives them, of which block is the first in the task; not for the local
// Hessian. The lane's weights are element by element.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static void search_strip(const WideStrip<Isa> &strip, typename Isa::Float amax, const EncodeTask &task, int64_t block,
                         unsigned char *scales) {
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;
  Factors<Isa> nearest = factors<Isa, kRecipe, Type>(amax, 6.0f, task.global_scale);
  Int codes;
  auto hard = Isa::less(amax, Isa::set_float(kLeastSwept));
  if (task.search == SPARKFP4_FOUR_OVER_SIX) {
    Factors<Isa> four = factors<Isa, kRecipe, Type>(amax, 4.0f, task.global_scale);
    Sweep<Isa> sweep(strip, nullptr, amax, Isa::set_float(kBlock));
    auto all = Isa::less_equal(amax, amax);
    sweep.template add<false, true>(nearest.bytes, nearest.d, all);
    sweep.template add<false, true>(four.bytes, four.d, all);
    codes = sweep.best;
    hard = Isa::either(hard, sweep.is_close());
  } else {
    WideStrip<Isa> h;
    Float weight = Isa::set_float(kBlock);
    if (task.search == SPARKFP4_WEIGHTED) {
      weight = load_importance<Isa>(task, (task.first_block + block) % task.row_blocks, &h);
      hard = Isa::either(hard, Isa::less(weight, Isa::set_float(kLeastSweptWeight)));
      hard = Isa::either(hard, Isa::less(Isa::set_float(kMostSweptWeight), weight));
    }

    // Scales below 16 are evenly spaced, and a block above 448 is cut off by all.
    hard = Isa::either(hard, Isa::less_int(nearest.bytes, Isa::set(16)));
    hard = Isa::either(hard, Isa::less(Isa::mul(nearest.d, Isa::set_float(7.0f)), amax));
    typename Isa::Mask unproved;
    if (task.search == SPARKFP4_WEIGHTED) {
      codes = sweep_strip<Isa, kRecipe, true>(Sweep<Isa>(strip, h.w, amax, weight), nearest.bytes, task.global_scale,
                                              &unproved);
    } else {
      codes = sweep_strip<Isa, kRecipe, false>(Sweep<Isa>(strip, nullptr, amax, weight), nearest.bytes,
                                               task.global_scale, &unproved);
    }

    hard = Isa::either(hard, unproved);
  }

  hard = Isa::either(hard, Isa::less(Isa::set_float(kMostSwept), amax));
  Isa::store_bytes(scales, codes);
  uint32_t left = Isa::lanes(hard);
  if (left == 0) {
    return;
  }

  alignas(64) float amaxes[Isa::kWidth];
  Isa::store_floats(amaxes, amax);
  for (; left != 0; left &= left - 1) {
    int lane = __builtin_ctz(left);
    float w[kBlock];
    for (int i = 0; i < kBlock; i++) {
      w[i] = strip.w[i * Isa::kWidth + lane];
    }

    scales[lane] = e4m3_byte(searched_scale<kRecipe, Type>(w, amaxes[lane], task, block + lane));
  }
}

}  // namespace sparkfp4
