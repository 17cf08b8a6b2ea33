// The scale of a block by a local Hessian, 16 (8) scales at once: a lane of every vector belongs to a scale.
//
// Errors are those of the definition, bit by bit: the quotient is corrected by its remainder, which rounds it as a
// division does. Only the loss is summed otherwise, by rows of the upper triangle, in fused operations. Both sums are off
// by less than 45 roundings of sum(|H|) * max(e)^2. Scales whose losses are that near the least are compared in full.
//
// Scales are tried from 8 below the nearest on, a vector at a time, upwards and then downwards, until no further one can
// win, by hessian_bounds.h: below, the weights above 6 * d err at least as much as under the lowest scale that was tried;
// above, from a < 3.5 * d on, a scale errs at least as much in each weight as the one eight below, which has all of its
// values.
#pragma once

#include "hessian_bounds.h"
#include "sweep.h"

namespace sparkfp4 {

constexpr int kAboveTop = 8;  // codes that are twice as large are so far apart

// 45 roundings, and what the largest error of a block may be off by.
constexpr float kSumSlack = 0x1p-18f;

// What 0 <= x becomes as an E2M1 value, nearest even: within an octave from 1 on, as below 2, the values are evenly
// spaced, and the sum with a power of two of that spacing rounds to them.
template <typename Isa>
SPARKFP4_INLINE typename Isa::Float nearest_even_e2m1(typename Isa::Float x) {
  typename Isa::Float most = Isa::min(x, Isa::set_float(6.0f));
  typename Isa::Int octave = Isa::bit_and(Isa::as_int(most), Isa::set(0x7f800000));
  octave = Isa::max_u32(octave, Isa::set(0x3f800000));
  typename Isa::Float power = Isa::as_float(Isa::add_int(octave, Isa::set(22u << 23)));
  return Isa::sub(Isa::add(most, power), power);
}

template <typename Isa, sparkfp4_recipe kRecipe>
class HessianSearch {
 public:
  using Int = typename Isa::Int;
  using Float = typename Isa::Float;

  HessianSearch(const float *w, float amax, float global_scale, const HessianBlock &hessian)
      : w_(w), amax_(amax), global_scale_(global_scale), hessian_(hessian), slack_(hessian.weight * (amax * amax)) {}

  // The code of the smallest loss, the lowest of equal ones. own is the Hessian itself.
  int code(int nearest, const float *own) {
    int first = nearest > 8 ? nearest - 8 : 1;
    first_ = first;
    end_ = first;
    do {
      end_ += Isa::kWidth;
      try_scales(end_ - Isa::kWidth);
    } while (end_ <= kLargestScaleCode && !(hessian_.is_bounded && is_over_above()));

    while (first_ > 1 && !(hessian_.is_bounded && is_over_below(first_))) {
      first_ -= Isa::kWidth;
      try_scales(first_);
    }

    return best_of_near(own);
  }

 private:
  SPARKFP4_MEMBER Float factor(Int codes) const {
    return factor_of<Isa, kRecipe>(e4m3_value<Isa>(Isa::template shift_left<20>(codes)), global_scale_);
  }

  // Of kWidth scales from code on, which may be below 1 or above the largest.
  void try_scales(int code) {
    Int lowest = Isa::set(static_cast<uint32_t>(code + Isa::kWidth));
    Int codes = Isa::sub_int(lowest, Isa::load_bytes(kDescending + 16 - Isa::kWidth));
    auto valid = Isa::both(Isa::less_int(Isa::set(0), codes), Isa::less_int(codes, Isa::set(kLargestScaleCode + 1)));
    Float d = factor(Isa::select_int(valid, codes, Isa::set(kLargestScaleCode)));
    Float inverse = Isa::divide(Isa::set_float(1.0f), d);
    Float errors[kBlock];
    Float bound = Isa::set_float(0);
#pragma GCC unroll 16
    for (int i = 0; i < kBlock; i++) {
      Float w = Isa::set_float(__builtin_fabsf(w_[i]));
      Float near = Isa::mul(w, inverse);
      Float quotient = Isa::mul_add(Isa::sub_mul(w, near, d), inverse, near);
      Float error = Isa::sub(w, Isa::mul(nearest_even_e2m1<Isa>(quotient), d));
      bound = Isa::mul_add(Isa::mul(error, error), Isa::set_float(hessian_.bound[i]), bound);
      Int sign = Isa::set(bits_as<uint32_t>(w_[i]) & 0x80000000);
      errors[i] = Isa::as_float(Isa::bit_xor(Isa::as_int(error), sign));
    }

    Float sums[2] = {Isa::set_float(0), Isa::set_float(0)};
    const float *h = hessian_.upper;
#pragma GCC unroll 16
    for (int i = 0; i < kBlock; i++) {
      Float row = Isa::mul(errors[i], Isa::set_float(*h++));
#pragma GCC unroll 16
      for (int j = i + 1; j < kBlock; j++) {
        row = Isa::mul_add(errors[j], Isa::set_float(*h++), row);
      }

      sums[i % 2] = Isa::mul_add(errors[i], row, sums[i % 2]);
    }

    Float loss = Isa::add(sums[0], sums[1]);
    // No error is above max(d, a - 6 * d), nor above a, but for its rounding.
    Float most = Isa::max(d, Isa::sub(Isa::set_float(amax_), Isa::mul(d, Isa::set_float(6.0f))));
    most = Isa::mul(Isa::min(most, Isa::set_float(amax_)), Isa::set_float(1 + 0x1p-10f));
    most = Isa::add(most, Isa::set_float(amax_ * 0x1p-16f));
    Float slack = Isa::mul(Isa::mul(most, most), Isa::set_float(hessian_.weight * kSumSlack));
    Float none = Isa::set_float(__builtin_inff());
    Isa::store_floats(lower_ + kBefore + code, Isa::select(valid, Isa::sub(loss, slack), none));
    Isa::store_floats(bounds_, bound);
    float least = Isa::reduce_min(Isa::select(valid, Isa::add(loss, slack), none));
    least_ = least < least_ ? least : least_;
  }

  // What is below a bound by less than this may be above it in full.
  float margin() const { return slack_ * 0x1p-17f; }

  bool is_over_above() const {
    // The next one's eighth below was tried, and is no subnormal code.
    if (end_ < 2 * kAboveTop || !(amax_ < 3.49f * code_factor<kRecipe>(end_, global_scale_))) {
      return false;
    }

    float bound = bounds_[Isa::kWidth - 1];
    for (int i = Isa::kWidth - kAboveTop; i < Isa::kWidth - 1; i++) {
      bound = bounds_[i] < bound ? bounds_[i] : bound;
    }

    return bound * (1 - 0x1p-10f) - margin() > least_;
  }

  bool is_over_below(int code) const {
    float most = 6.0f * code_factor<kRecipe>(code, global_scale_) + amax_ * 0x1p-16f;
    Float sum = Isa::set_float(0);
    for (int i = 0; i < kBlock; i += Isa::kWidth) {
      Float error = Isa::sub(Isa::abs(Isa::load_floats(w_ + i)), Isa::set_float(most));
      error = Isa::max(error, Isa::set_float(0));
      sum = Isa::mul_add(Isa::mul(error, error), Isa::load_floats(hessian_.bound + i), sum);
    }

    return Isa::reduce_add(sum) * (1 - 0x1p-10f) - margin() > least_;
  }

  int best_of_near(const float *own) const {
    int near[kLargestScaleCode + 1];
    int count = 0;
    for (int code = first_; code < end_; code += Isa::kWidth) {
      Float lower = Isa::load_floats(lower_ + kBefore + code);
      for (uint32_t left = Isa::lanes(Isa::less_equal(lower, Isa::set_float(least_))); left != 0; left &= left - 1) {
        near[count++] = code + __builtin_ctz(left);
      }
    }

    if (count == 1) {
      return near[0];
    }

    float transposed[kBlock * kBlock];
    for (int i = 0; i < kBlock * kBlock; i++) {
      std::memcpy(&transposed[i % kBlock * kBlock + i / kBlock], own + i, sizeof own[0]);
    }

    int best = 0;
    float least = __builtin_inff();
    for (int i = 0; i < count; i++) {
      float loss = block_loss(w_, code_factor<kRecipe>(near[i], global_scale_), transposed, true);
      if (loss < least) {
        best = near[i];
        least = loss;
      }
    }

    return best;
  }

  static constexpr int kBefore = 16;  // codes below 1 that a vector may have
  static constexpr unsigned char kDescending[16] = {16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1};

  const float *w_;
  float amax_;
  float global_scale_;
  const HessianBlock &hessian_;
  float slack_;
  float least_ = __builtin_inff();  // of what losses are at most
  int first_ = 0;
  int end_ = 0;
  alignas(64) float bounds_[Isa::kWidth];  // what the losses of the last vector are at least
  float lower_[kBefore + kLargestScaleCode + 1 + 16];
};

// The scale code of a block, whose Hessian is own; nearest is that of round to nearest.
template <typename Isa, sparkfp4_recipe kRecipe>
static int hessian_code(const float *w, float amax, int nearest, const EncodeTask &task, int64_t block) {
  int64_t column = (task.first_block + block) % task.row_blocks;
  const float *own = task.importance + column * importance_values(task.search);
  HessianBlock local;
  HessianBlock *hessian = task.hessians == nullptr ? &local : task.hessians + column;
  if (task.hessians == nullptr || hessian->weight == 0) {
    prepare_hessian(own, hessian);
  }

  float least = code_factor<kRecipe>(1, task.global_scale);
  float most = code_factor<kRecipe>(kLargestScaleCode, task.global_scale);
  if (hessian->weight < 0 || amax < kLeastSwept || amax > kMostSwept || least < kMinScale || most > kMaxScale) {
    return swept_code<kRecipe>(w, amax, nearest, task.global_scale, own, true);
  }

  return HessianSearch<Isa, kRecipe>(w, amax, task.global_scale, *hessian).code(nearest, own);
}

}  // namespace sparkfp4
