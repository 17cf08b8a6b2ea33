// The sweep over the scales of a block.
//
// It looks at few of the 126 candidates, and yet finds the argmin of all. Let c be a code under which the block's
// largest |w| has a quotient below 7. A grid of twice the step, d' = 2 d, has no point below 7 d that the grid of d
// lacks, and ties go to the same points; so each element errs no less under d' than under d, after rounding too, and
// neither does the sum. Codes from 8 on double their scale with 8 more, those below 16 stand for themselves times 2^-9:
// what follows 8 codes (or follows 15) behind the first such c has a code of no greater loss before it, and is never the
// lowest of the best. Before c the largest |w| alone errs by |w| - 6 d, more and more: once its term exceeds the least
// loss, no code before can win. Both hold as they are for errors weighed one by one; those weighed by a Hessian take all
// 126.
//
// Most blocks are decided by losses that are nearly those of the definition (nearly_loss(), nearness()): five
// instructions an element, for sums may be fused and ties go anywhere. Where the best two are nearer to each other than
// that allows, these two are compared in full; where three are, all are.
#pragma once

#include "losses.cuh"

namespace sparkfp4::cuda {

// Up to these no candidate's d is above kMostByBits: it is less than 0.4 * amax, 15 * 2^-9 of the global scale (of
// compressed-tensors its inverse) where that is more, or its eighth where a block's scale is zero.
constexpr float kMostLargest = 1;
constexpr float kMostGlobal = 4;

// Others are not searched and their quotients may be anything.
constexpr float kLeastByBits = 0x1p-50f;

// The codes that are tried upwards.
struct Window {
  uint32_t first;
  uint32_t last;
};

__device__ __forceinline__ Window find_window(float amax, const Rule &rule) {
  // The first code of which amax is below 7 d, or the one behind it.
  float ratio = divide(amax, rule.modelopt ? rule.global_scale : rule.inverse_scale,
                       rule.modelopt ? rule.inverse_scale : rule.global_scale) * (1 / 6.99f);
  ratio = fminf(ratio, 448.0f);
  uint32_t bits = __float_as_uint(ratio);
  uint32_t first = ratio < 0x1p-6f ? static_cast<uint32_t>(ceilf(ratio * 0x1p9f))
                                   : ((bits + 0xfffff) >> 20) - (120u << 3);
  first = max(first, 1u);
  while (first <= kLastCode && amax > 6.99f * rule.factor(code_scale(first))) {
    first++;
  }

  return {first, min(first < 8 ? 15u : first + 7, kLastCode)};
}

// No more than the loss of a code below the window, nor than that of any before it.
template <typename Weighing>
__device__ __forceinline__ float least_below(const Weights &weights, const Weighing &weighing, float amax,
                                             const Rule &rule, uint32_t code) {
  float most = __fmul_rn(6.0f, rule.factor(code_scale(code)));
  if constexpr (std::is_same_v<Weighing, Plain>) {
    float error = fmaxf(__fsub_rn(amax, most), 0.0f);
    return __fmul_rn(error, error);
  } else {
    float bound = 0;
#pragma unroll
    for (int i = 0; i < kBlock; i++) {
      float error = fmaxf(__fsub_rn(fabsf(weights.w[i]), most), 0.0f);
      bound = fmaxf(bound, weighing.weigh(i, __fmul_rn(error, error)));
    }

    return bound;
  }
}

// The code of the least loss among all, the lowest of equals; 0 where none is finite.
template <bool kExact, typename Weighing>
__device__ __forceinline__ uint32_t sweep(const Weights &weights, const Weighing &weighing, float amax,
                                          const Rule &rule, const float *halves) {
  Window window = find_window(amax, rule);
  uint32_t best = 0;
  float least = __uint_as_float(F32::kInfinity);
#pragma unroll 1
  for (uint32_t code = window.first; code <= window.last; code++) {
    float loss = loss_of<kExact, false>(weights, weighing, code_scale(code), rule, halves);
    if (loss < least) {
      least = loss;
      best = code;
    }
  }

#pragma unroll 1
  for (uint32_t code = window.first - 1; code >= 1; code--) {
    if (least_below(weights, weighing, amax, rule, code) > least) {
      break;
    }

    float loss = loss_of<kExact, true>(weights, weighing, code_scale(code), rule, halves);
    if (loss <= least && loss < __uint_as_float(F32::kInfinity)) {
      least = loss;
      best = code;
    }
  }

  return best;
}

// The loss of a block under d, at most kMostByBits, but for what nearness() says.
template <bool kClamp, typename Weighing>
__device__ __forceinline__ float nearly_loss(const Weights &weights, const Weighing &weighing, float d) {
  float step = d * (1 / kToE2m1);
  float inverse = approximate_reciprocal(step);
  float sums[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    // Squared, its sign does not matter.
    float w = kClamp ? fabsf(weights.w[i]) : weights.w[i];
    float quotient = __fmul_rn(w, inverse);
    uint32_t bits = __float_as_uint(kClamp ? fminf(quotient, 6 * kToE2m1) : quotient) + kHalfCode;
    float error = __fmaf_rn(__uint_as_float(bits & 0xffc00000u), -step, w);
    if constexpr (std::is_same_v<Weighing, Plain>) {
      sums[i % 4] = __fmaf_rn(error, error, sums[i % 4]);
    } else {
      sums[i % 4] = __fmaf_rn(weighing.h[i], __fmul_rn(error, error), sums[i % 4]);
    }
  }

  return __fadd_rn(__fadd_rn(sums[0], sums[1]), __fadd_rn(sums[2], sums[3]));
}

// How far apart two losses must be, the lesser of which is given, for nearly_loss() to tell which is less; mean is of
// the weights of errors.
//
// With errors e and what is added to them, v, a loss is off by 2 sqrt(sum e^2) sqrt(sum v^2) + sum v^2 and by what its
// terms and sums round to, 2^-19 of itself. An element's v is up to 2^-24 of its value under d, 4/3 |w| at most, where
// the definition rounds that, and 2^-23 where d is by the global scale's inverse; and where a quotient is so near a
// midpoint that it went the other way, twice what the quotient is off by, 1.5 * 2^-23 |w| and 2^-24 d, for e has nearly
// the same magnitude on both sides. d is below 2 amax: the root of sum v^2 is below 2^-18 amax. Contenders also lose
// 2^-16 to their codes. Both losses are off, so that twice that and a little is asked for.
__device__ __forceinline__ float nearness(float loss, float amax, float mean) {
  float root;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(loss * mean));
  return 0x1.2p-16f * amax * root + 0x1.4p-15f * loss + 0x1p-33f * amax * amax * mean;
}

// Below it squares of errors may be subnormal numbers once weighed.
constexpr float kLeastWeighed = 0x1p-90f;

// The three candidates of the least losses.
struct Contenders {
  // A loss's bits, of which the lowest seven are the code.
  uint32_t keys[3] = {0xffffffffu, 0xffffffffu, 0xffffffffu};

  __device__ __forceinline__ void add(float loss, uint32_t code) {
    uint32_t key = (__float_as_uint(loss) & ~127u) | code;
    uint32_t second = max(keys[0], key);
    uint32_t third = max(keys[1], second);
    keys[0] = min(keys[0], key);
    keys[1] = min(keys[1], second);
    keys[2] = min(keys[2], third);
  }

  // NaN where there are fewer.
  __device__ __forceinline__ float loss(int i) const { return __uint_as_float(keys[i] & ~127u); }
  __device__ __forceinline__ uint32_t code(int i) const { return keys[i] & 127; }
};

__device__ __forceinline__ float mean_weight(const Plain &) {
  return 1;
}

__device__ __forceinline__ float mean_weight(const Diagonal &diagonal) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    sum += diagonal.h[i];
  }

  return sum * (1.0f / kBlock);
}

// As sweep(), but 0 too where only that can tell. amax is kMostLargest at most, the global scale kMostGlobal.
template <typename Weighing>
__device__ __forceinline__ uint32_t sweep_quickly(const Weights &weights, const Weighing &weighing, float amax,
                                                  const Rule &rule, const float *halves) {
  Window window = find_window(amax, rule);
  // A code at bit 20 of a float, subnormals too, is 2^-120 times its value.
  float unit = (rule.modelopt ? rule.global_scale : rule.inverse_scale) * 0x1p120f;
  auto nearly_factor = [&](uint32_t code) { return __fmul_rn(__uint_as_float(code << 20), unit); };
  Contenders contenders;
#pragma unroll 1
  for (uint32_t code = window.first; code <= window.last; code++) {
    contenders.add(nearly_loss<false>(weights, weighing, nearly_factor(code)), code);
  }

  float mean = mean_weight(weighing);
  float limit;
  for (uint32_t code = window.first - 1;; code--) {
    float least = contenders.loss(0);
    limit = least + nearness(least, amax, mean);
    if (code == 0 || least_below(weights, weighing, amax, rule, code) > limit) {
      break;
    }

    contenders.add(nearly_loss<true>(weights, weighing, nearly_factor(code)), code);
  }

  bool weighed = !std::is_same_v<Weighing, Plain>;
  if (!(limit < __uint_as_float(F32::kInfinity)) || (weighed && contenders.loss(0) < kLeastWeighed) ||
      contenders.loss(2) <= limit) {
    return 0;
  }

  if (!(contenders.loss(1) <= limit)) {
    return contenders.code(0);
  }

  uint32_t low = min(contenders.code(0), contenders.code(1));
  uint32_t high = max(contenders.code(0), contenders.code(1));
  float losses[2];
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    losses[i] = loss_of<true, true>(weights, weighing, code_scale(i == 0 ? low : high), rule, halves);
  }

  return losses[1] < losses[0] ? high : low;
}

}  // namespace sparkfp4::cuda
