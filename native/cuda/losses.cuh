// The weights of a block, and what they lose under a scale.
#pragma once

#include "encode.cuh"

namespace sparkfp4::cuda {

constexpr uint32_t kLastCode = 126;

// What all kinds of sources come to; -0 is 0.
struct Weights {
  float w[kBlock];
};

template <typename Type>
__device__ __forceinline__ uint32_t load_weights(const unsigned char *data, const Source &source,
                                                 const unsigned char *scales, uint32_t index, Weights *weights) {
  Block<Type> block;
  block.load(data + static_cast<int64_t>(index) * Type::kBlockBytes,
             is_aligned(data, Type::kBlockBytes < 16 ? 8 : 16));
  float scale = 1;
  if constexpr (Type::kCodes) {
    scale = source_scale(source, scales, index);
  }

#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    weights->w[i] = __fadd_rn(block.weight(i, scale), 0.0f);
  }

  uint32_t bits = block.largest();
  return Type::kCodes ? __float_as_uint(Block<Type>::value(bits, scale)) : bits;
}

// The largest magnitude as Workspace::largest has it.
__device__ __forceinline__ uint32_t load_weights(const Source &source, const DeviceSegment &segment, uint32_t index,
                                                 Weights *weights) {
  switch (source.kind) {
    case SPARKFP4_BF16:
      return load_weights<Bf16>(segment.data, source, segment.scales, index, weights);
    case SPARKFP4_F16:
      return load_weights<F16>(segment.data, source, segment.scales, index, weights);
    case SPARKFP4_F32:
      return load_weights<F32>(segment.data, source, segment.scales, index, weights);
    case E4m3::kSource:
      return load_weights<E4m3>(segment.data, source, segment.scales, index, weights);
    case Int4::kSource:
      return load_weights<Int4>(segment.data, source, segment.scales, index, weights);
    default:
      return load_weights<E2m1>(segment.data, source, segment.scales, index, weights);
  }
}

__device__ __forceinline__ float code_scale(uint32_t code) {
  return __uint_as_float(code < 8 ? __float_as_uint(code * 0x1p-9f) : (code << 20) + (120u << 23));
}

// The E2M1 value nearest to a quotient below 7, or any where it is clamped.
template <bool kClamp>
__device__ __forceinline__ float round_e2m1(float quotient) {
  if (kClamp) {
    quotient = fminf(quotient, 6.0f);
  }

  // 1.5 * 2^22 times the power of two at or below it, 1 at least: what is added rounds to the grid there.
  uint32_t power = max(__float_as_uint(quotient) & 0x7f800000u, 0x3f800000u);
  float magic = __uint_as_float(power + (22u << 23) + 0x400000u);
  return __fsub_rn(__fadd_rn(quotient, magic), magic);
}

// What errors weigh.
struct Plain {
  __device__ __forceinline__ float weigh(int, float square) const { return square; }
};

struct Diagonal {
  float h[kBlock];

  __device__ __forceinline__ float weigh(int i, float square) const { return __fmul_rn(h[i], square); }
};

// The loss of a block under d. kExact: by exact quotients, else by products with the reciprocal, which do where no
// element is near a midpoint and d is kMostByBits at most.
template <bool kExact, bool kClamp, typename Weighing>
__device__ __forceinline__ float loss_of(const Weights &weights, const Weighing &weighing, float scale,
                                         const Rule &rule, const float *halves) {
  float d = rule.factor(scale);
  float inverse = kExact ? __frcp_rn(d) : halves[mantissa(scale)] * approximate_reciprocal(d) * (2 * kToE2m1);
  float step = d * (1 / kToE2m1);
  float sums[8];
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    float error;
    if constexpr (kExact) {
      float w = fabsf(weights.w[i]);
      error = __fsub_rn(w, __fmul_rn(round_e2m1<kClamp>(divide(w, d, inverse)), d));
    } else {
      // Squared, its sign does not matter.
      float w = kClamp ? fabsf(weights.w[i]) : weights.w[i];
      float quotient = __fmul_rn(w, inverse);
      error = __fsub_rn(w, __fmul_rn(round_by_bits(kClamp ? fminf(quotient, 6 * kToE2m1) : quotient), step));
    }

    float square = weighing.weigh(i, __fmul_rn(error, error));
    sums[i % 8] = i < 8 ? square : __fadd_rn(sums[i % 8], square);
  }

#pragma unroll
  for (int half = 4; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; i++) {
      sums[i] = __fadd_rn(sums[i], sums[i + half]);
    }
  }

  return sums[0];
}

// The loss of a candidate as the definition has it: for global scales outside the range of the shortcuts.
template <typename Weighing>
__device__ __noinline__ float loss_plainly(const Weights &weights, const Weighing &weighing, const Rule &rule,
                                           uint32_t code) {
  float d = rule.factor_plainly(e4m3_value(code));
  float terms[kBlock];
  for (int i = 0; i < kBlock; i++) {
    float w = fabsf(weights.w[i]);
    float error = w - e2m1_magnitude(e2m1_index(w / d)) * d;
    terms[i] = weighing.weigh(i, error * error);
  }

  return sum_tree(terms);
}

// The same of copies, so that the originals stay in registers.
template <typename Weighing>
__device__ __forceinline__ float rare_loss(const Weights &weights, const Weighing &weighing, const Rule &rule,
                                           uint32_t code) {
  Weights weights_copy = weights;
  Weighing weighing_copy = weighing;
  return loss_plainly(weights_copy, weighing_copy, rule, code);
}

}  // namespace sparkfp4::cuda
