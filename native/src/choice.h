// The choice of a strip's scales by a search, before its codes are chosen.
#pragma once

#include <utility>

#include "elements.h"
#include "hessian.h"

namespace sparkfp4 {

template <typename Isa, typename Type, int... kElements>
SPARKFP4_INLINE void widen_strip(const typename Isa::Int *x, typename Isa::Float source_scale, WideStrip<Isa> *strip,
                                 std::integer_sequence<int, kElements...>) {
  (Isa::store_floats(strip->w + kElements * Isa::kWidth, wide_magnitude<Isa, Type, kElements>(x, source_scale)), ...);
}

// The scales of a strip by local Hessians, block by block.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static void choose_by_hessians(const EncodeTask &task, int64_t block, const unsigned char *source,
                               const float *block_scales, unsigned char *scales) {
  for (int lane = 0; lane < Isa::kWidth; lane++) {
    float source_scale = Type::kCodes ? block_scales[lane] : 1.0f;
    float w[kBlock];
    float amax = 0;
    for (int i = 0; i < kBlock; i++) {
      w[i] = widen<Type>(load_element<Type>(source + lane * Type::kBlockBytes, i, source_scale));
      float magnitude = __builtin_fabsf(w[i]);
      amax = magnitude > amax ? magnitude : amax;
    }

    int nearest = e4m3_byte(block_scale<kRecipe, Type>(amax, 6.0f, task.global_scale));
    int code = is_searched(amax) ? hessian_code<Isa, kRecipe>(w, amax, nearest, task, block + lane) : nearest;
    scales[lane] = static_cast<unsigned char>(code);
  }
}

// Writes the scales that the task's search gives a strip; block is its first one's place in the task.
template <typename Isa, sparkfp4_recipe kRecipe, typename Type>
static void choose_scales(const EncodeTask &task, int64_t block, const unsigned char *source,
                          const float *block_scales, unsigned char *scales) {
  if (task.search == SPARKFP4_WEIGHTED_HESSIAN) {
    return choose_by_hessians<Isa, kRecipe, Type>(task, block, source, block_scales, scales);
  }

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

}  // namespace sparkfp4
