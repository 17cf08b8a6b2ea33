// The choice of a block's scale by its loss, a block at a time: the tier for every processor, and the vector tiers'
// refuge.
#pragma once

#include "arithmetic.h"

namespace sparkfp4 {

constexpr int kLargestScaleCode = 126;  // the E4M3 code of 448

// Blocks of a larger or smaller amax keep the scale of round to nearest: the squares of their errors would leave the
// normal range.
constexpr float kLeastSearched = 0x1p-50f;
constexpr float kMostSearched = 0x1p60f;

constexpr int importance_values(sparkfp4_search search) {
  return search == SPARKFP4_WEIGHTED_HESSIAN ? kBlock * kBlock : search == SPARKFP4_WEIGHTED ? kBlock : 0;
}

// The importance of the task's block, or null where it is not weighed.
static inline const float *block_importance(const EncodeTask &task, int64_t block) {
  return task.importance == nullptr ? nullptr
                                    : task.importance + (task.first_block + block) % task.row_blocks *
                                                            importance_values(task.search);
}

// Signed; without NaN, for w is finite.
static inline void block_errors(const float *w, float d, float *errors) {
  for (int i = 0; i < kBlock; i++) {
    float x = w[i] / d;
    float magnitude = e2m1_magnitude(e2m1_index(__builtin_fabsf(x))) * d;
    errors[i] = w[i] < 0 ? w[i] + magnitude : w[i] - magnitude;
  }
}

// h is the block's importance, or null.
static inline float block_loss(const float *errors, const float *h, bool hessian) {
  float terms[kBlock];
  for (int i = 0; i < kBlock; i++) {
    if (h == nullptr) {
      terms[i] = errors[i] * errors[i];
    } else if (!hessian) {
      terms[i] = h[i] * (errors[i] * errors[i]);
    } else {
      float products[kBlock];
      for (int j = 0; j < kBlock; j++) {
        products[j] = h[i * kBlock + j] * errors[j];
      }

      terms[i] = errors[i] * sum_tree(products);
    }
  }

  return sum_tree(terms);
}

static inline bool any_nonzero(const float *values, int count) {
  for (int i = 0; i < count; i++) {
    if (values[i] != 0) {
      return true;
    }
  }

  return false;
}

// The scale of the smallest loss, the lowest of equal ones; nearest where no loss is finite.
template <sparkfp4_recipe kRecipe>
static float swept_scale(const float *w, float nearest, const EncodeTask &task, const float *importance) {
  bool hessian = task.search == SPARKFP4_WEIGHTED_HESSIAN;
  int values = importance_values(task.search);
  float own[kBlock * kBlock];
  if (importance != nullptr) {
    // It may lie at any address.
    std::memcpy(own, importance, values * sizeof own[0]);
  }

  const float *h = importance != nullptr && any_nonzero(own, values) ? own : nullptr;
  float best = nearest;
  float least = __builtin_inff();
  for (int code = 1; code <= kLargestScaleCode; code++) {
    float scale = e4m3_value(code);
    float errors[kBlock];
    block_errors(w, dequant_factor<kRecipe>(scale, task.global_scale), errors);
    float loss = block_loss(errors, h, hessian);
    if (loss < least) {
      best = scale;
      least = loss;
    }
  }

  return best;
}

// The scale that the task's search gives a block, as E4M3 has it.
template <sparkfp4_recipe kRecipe, typename Type>
static float searched_scale(const float *w, float amax, const EncodeTask &task, int64_t block) {
  float nearest = block_scale<kRecipe, Type>(amax, 6.0f, task.global_scale);
  if (!(amax >= kLeastSearched && amax <= kMostSearched)) {
    return nearest;
  }

  if (task.search != SPARKFP4_FOUR_OVER_SIX) {
    return swept_scale<kRecipe>(w, nearest, task, block_importance(task, block));
  }

  float to_four = block_scale<kRecipe, Type>(amax, 4.0f, task.global_scale);
  float errors[kBlock];
  block_errors(w, dequant_factor<kRecipe>(nearest, task.global_scale), errors);
  float of_six = block_loss(errors, nullptr, false);
  block_errors(w, dequant_factor<kRecipe>(to_four, task.global_scale), errors);
  return block_loss(errors, nullptr, false) < of_six ? to_four : nearest;
}

}  // namespace sparkfp4
