// The choice of a block's scale by its loss, a block at a time: the tier for every processor, and the vector tiers'
// refuge.
//
// Few of the 126 scales are tried. With a the block's amax:
//
// Below. A weight that is more than 6 * d is 6 * d, and its error grows as d falls. Once such a weight's term alone is
// more than the least loss so far, all lower scales are out of the question.
//
// Above. From c = 16 on d(c) = 2 * d(c - 8) exactly. If a < 3.5 * d(c), every value that a weight takes under c it may
// take under c - 8 as well, which has further ones between: quotients are exactly doubled, and where the nearest value
// is another one, it is nearer. Thus loss(c) >= loss(c - 8), but for the roundings of products and differences, which
// only matter where a weight is all but in the middle of two values. So scale c is tried only if loss(c - 8) is within
// kSlack of the least.
#pragma once

#include "arithmetic.h"

namespace sparkfp4 {

constexpr int kLargestScaleCode = 126;  // the E4M3 code of 448

// Blocks of a larger or smaller amax keep the scale of round to nearest: the squares of their errors would leave the
// normal range.
constexpr float kLeastSearched = 0x1p-50f;
constexpr float kMostSearched = 0x1p60f;

// An error that is rounded otherwise, or is that of the other value where a quotient is all but in the middle of two, is
// off by less than a * 2^-21. By Cauchy and Schwarz a loss is then off by less than 2^-16 * (loss + sum(h) / 16 * a * a /
// 16), its own sum's roundings included; twice that is between two losses.
constexpr float kSlack = 0x1p-15f;

// Losses outside might leave the normal range.
constexpr float kLeastWeight = 0x1p-80f;
constexpr float kMostWeight = 0x1p100f;

constexpr int importance_values(sparkfp4_search search) {
  return search == SPARKFP4_WEIGHTED_HESSIAN ? kBlock * kBlock : search == SPARKFP4_WEIGHTED ? kBlock : 0;
}

// The importance of the task's block, or null where it is not weighed.
static inline const float *block_importance(const EncodeTask &task, int64_t block) {
  return task.importance == nullptr ? nullptr
                                    : task.importance + (task.first_block + block) % task.row_blocks *
                                                            importance_values(task.search);
}

// What 0 <= x becomes as an E2M1 value. Written so that it needs no table.
static inline float nearest_e2m1(float x) {
  float below_two = (x > 0.25f ? 0.5f : 0) + (x >= 0.75f ? 0.5f : 0) + (x > 1.25f ? 0.5f : 0) + (x >= 1.75f ? 0.5f : 0);
  return below_two + (x > 2.5f ? 1.0f : 0) + (x >= 3.5f ? 1.0f : 0) + (x > 5.0f ? 2.0f : 0);
}

// Signed; without NaN, for w is finite.
static inline void block_errors(const float *w, float d, float *errors) {
  for (int i = 0; i < kBlock; i++) {
    float magnitude = __builtin_fabsf(w[i]);
    float error = magnitude - nearest_e2m1(magnitude / d) * d;
    errors[i] = w[i] < 0 ? -error : error;
  }
}

// h is the block's importance, or null; of a Hessian, the transposed one.
static inline float block_loss(const float *w, float d, const float *h, bool hessian) {
  float errors[kBlock];
  float terms[kBlock];
  block_errors(w, d, errors);
  if (hessian && h != nullptr) {
    // The tree of all rows at once: column j with j + 8, then j + 4, j + 2, j + 1.
    float sums[kBlock / 2][kBlock];
    for (int j = 0; j < kBlock / 2; j++) {
      for (int i = 0; i < kBlock; i++) {
        sums[j][i] = h[j * kBlock + i] * errors[j] + h[(j + kBlock / 2) * kBlock + i] * errors[j + kBlock / 2];
      }
    }

    for (int i = 0; i < kBlock; i++) {
      float even = (sums[0][i] + sums[4][i]) + (sums[2][i] + sums[6][i]);
      float odd = (sums[1][i] + sums[5][i]) + (sums[3][i] + sums[7][i]);
      terms[i] = errors[i] * (even + odd);
    }
  } else {
    for (int i = 0; i < kBlock; i++) {
      float square = errors[i] * errors[i];
      terms[i] = h == nullptr ? square : h[i] * square;
    }
  }

  return sum_tree(terms);
}

// The largest term of a loss under d, or a lower d, that stems from a weight above 6 * d; 0 if there is none.
static inline float largest_cut_off(const float *w, float d, const float *h) {
  float largest = 0;
  for (int i = 0; i < kBlock; i++) {
    float error = __builtin_fabsf(w[i]) - 6.0f * d;
    error = error > 0 ? error : 0;
    float term = h == nullptr ? error * error : h[i] * (error * error);
    largest = term > largest ? term : largest;
  }

  return largest;
}

// The block whose scale is sought.
struct SweptBlock {
  const float *w;
  float amax;
  const float *h;  // its importance, not all of it zero, or null
  bool hessian;
};

template <sparkfp4_recipe kRecipe>
static inline float code_factor(int code, float global_scale) {
  return dequant_factor<kRecipe>(e4m3_value(code), global_scale);
}

// All scales, in order.
template <sparkfp4_recipe kRecipe>
static int full_sweep(const SweptBlock &block, int nearest, float global_scale) {
  int best = nearest;
  float least = __builtin_inff();
  for (int code = 1; code <= kLargestScaleCode; code++) {
    float loss = block_loss(block.w, code_factor<kRecipe>(code, global_scale), block.h, block.hessian);
    if (loss < least) {
      best = code;
      least = loss;
    }
  }

  return best;
}

// The same, of losses that are sums of squares, by the few scales that may win.
template <sparkfp4_recipe kRecipe>
static int bounded_sweep(const SweptBlock &block, int nearest, float global_scale, float weight) {
  // Lower bounds; of what is cut off below, one that is out of the question.
  float losses[kLargestScaleCode + 1];
  int best = nearest;
  float least = __builtin_inff();
  int top = nearest + 7 < kLargestScaleCode ? nearest + 7 : kLargestScaleCode;
  int code = top;
  for (; code >= 1; code--) {
    float d = code_factor<kRecipe>(code, global_scale);
    if (code < nearest && largest_cut_off(block.w, d, block.h) > least) {
      break;
    }

    losses[code] = block_loss(block.w, d, block.h, false);
    if (losses[code] <= least) {
      best = code;
      least = losses[code];
    }
  }

  for (; code >= 0; code--) {
    losses[code] = __builtin_inff();
  }

  float slack = kSlack * (weight / 16) * (block.amax * block.amax / 16);
  for (code = top + 1; code <= kLargestScaleCode; code++) {
    float d = code_factor<kRecipe>(code, global_scale);
    float finer = losses[code >= 16 ? code - 8 : 0];
    if (code >= 16 && block.amax < 3.49f * d && finer > least + (kSlack * least + slack)) {
      losses[code] = finer - (kSlack * finer + slack);
      continue;
    }

    losses[code] = block_loss(block.w, d, block.h, false);
    if (losses[code] < least) {
      best = code;
      least = losses[code];
    }
  }

  return best;
}

// The scale of the smallest loss, the lowest of equal ones; nearest where no loss is finite.
template <sparkfp4_recipe kRecipe>
static int swept_code(const float *w, float amax, int nearest, float global_scale, const float *importance,
                      bool hessian) {
  float own[kBlock * kBlock];
  int values = importance == nullptr ? 0 : hessian ? kBlock * kBlock : kBlock;
  float weight = 0;
  if (importance != nullptr) {
    // It may lie at any address.
    std::memcpy(own, importance, values * sizeof own[0]);
    for (int i = 0; i < values; i++) {
      weight += __builtin_fabsf(own[i]);
    }
  }

  if (importance != nullptr && hessian) {
    for (int i = 0; i < kBlock; i++) {
      for (int j = 0; j < i; j++) {
        float other = own[i * kBlock + j];
        own[i * kBlock + j] = own[j * kBlock + i];
        own[j * kBlock + i] = other;
      }
    }
  }

  SweptBlock block = {w, amax, weight > 0 ? own : nullptr, hessian};
  if (block.h == nullptr) {
    return bounded_sweep<kRecipe>(block, nearest, global_scale, 16);
  }

  float square = weight * (amax * amax);
  return hessian || !(square >= kLeastWeight && square <= kMostWeight && weight <= kMostWeight)
             ? full_sweep<kRecipe>(block, nearest, global_scale)
             : bounded_sweep<kRecipe>(block, nearest, global_scale, weight);
}

static inline bool is_searched(float amax) {
  return amax >= kLeastSearched && amax <= kMostSearched;
}

// One of two scales; the first where they err alike.
template <sparkfp4_recipe kRecipe>
static float better_scale(const float *w, float first, float second, float global_scale) {
  float of_first = block_loss(w, dequant_factor<kRecipe>(first, global_scale), nullptr, false);
  float of_second = block_loss(w, dequant_factor<kRecipe>(second, global_scale), nullptr, false);
  return of_second < of_first ? second : first;
}

// The scale that the task's search gives a block, as E4M3 has it.
template <sparkfp4_recipe kRecipe, typename Type>
static float searched_scale(const float *w, float amax, const EncodeTask &task, int64_t block) {
  float nearest = block_scale<kRecipe, Type>(amax, 6.0f, task.global_scale);
  if (!is_searched(amax)) {
    return nearest;
  }

  if (task.search == SPARKFP4_FOUR_OVER_SIX) {
    float to_four = block_scale<kRecipe, Type>(amax, 4.0f, task.global_scale);
    return better_scale<kRecipe>(w, nearest, to_four, task.global_scale);
  }

  return e4m3_value(swept_code<kRecipe>(w, amax, e4m3_byte(nearest), task.global_scale, block_importance(task, block),
                                        task.search == SPARKFP4_WEIGHTED_HESSIAN));
}

}  // namespace sparkfp4
