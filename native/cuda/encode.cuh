// The encode of a block by round to nearest, and what its kernels share.
#pragma once

#include "conclude.cuh"
#include "rounding.cuh"
#include "sums.cuh"
#include "walk.cuh"

namespace sparkfp4::cuda {

// Quotients of magnitudes that narrow, each a product: right as long as has_near_midpoint() says no.
template <typename Type>
struct Products {
  const Block<Type> &block;
  int first;
  float half_inverse;  // 1 / (2 d), in the block's units

  __device__ __forceinline__ float value(int i) const { return __fmul_rn(block.magnitude(first + i), half_inverse); }

  __device__ __forceinline__ float part(int i, int k) const {
    float magnitude = block.magnitude(first + i);
    return __saturatef(k == 0 ? __fmul_rn(magnitude, half_inverse) : __fmaf_rn(magnitude, half_inverse, -k));
  }
};

// Exact quotients.
struct Quotients {
  float halves[8];

  template <typename Weight>
  __device__ __forceinline__ Quotients(Weight weight, int first, float d) {
    float twice = __fadd_rn(d, d);
    float inverse = __frcp_rn(twice);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      halves[i] = divide(fabsf(weight(first + i)), twice, inverse);
    }
  }

  __device__ __forceinline__ float value(int i) const { return halves[i]; }

  __device__ __forceinline__ float part(int i, int k) const {
    return __saturatef(__fsub_rn(halves[i], static_cast<float>(k)));
  }
};

struct Encoded {
  uint2 codes;
  uint32_t byte;
  float d;
};

// As the definition has it, at any value.
template <typename Type>
__device__ __noinline__ void encode_plainly(const unsigned char *source, float source_scale, bool modelopt,
                                            float global_scale, Encoded *encoded) {
  float amax = 0;
#pragma unroll 1
  for (int i = 0; i < kBlock; i++) {
    amax = fmaxf(amax, fabsf(widen<Type>(load_element<Type>(source, i, source_scale))));
  }

  float scale = modelopt ? block_scale<SPARKFP4_MODELOPT, Type>(amax, 6.0f, global_scale)
                         : block_scale<SPARKFP4_COMPRESSED_TENSORS, Type>(amax, 6.0f, global_scale);
  float d = modelopt ? dequant_factor<SPARKFP4_MODELOPT>(scale, global_scale)
                     : dequant_factor<SPARKFP4_COMPRESSED_TENSORS>(scale, global_scale);
  uint64_t codes = 0;
#pragma unroll 1
  for (int i = 0; i < kBlock; i++) {
    float x = widen<Type>(load_element<Type>(source, i, source_scale)) / d;
    codes |= static_cast<uint64_t>(e2m1_index(fabsf(x)) + (x < 0 ? 8 : 0)) << (4 * i);
  }

  *encoded = {make_uint2(static_cast<uint32_t>(codes), static_cast<uint32_t>(codes >> 32)), e4m3_byte(scale), d};
}

// The squares of a block as the definition has them, at any value.
template <typename Type>
__device__ __noinline__ void squares_plainly(const unsigned char *source, float source_scale, uint2 codes, float d,
                                             Squares *squares) {
  float weights[kBlock];
  float errors[kBlock];
  for (int i = 0; i < kBlock; i++) {
    float w = fabsf(widen<Type>(load_element<Type>(source, i, source_scale)));
    uint32_t code = (i < 8 ? codes.x : codes.y) >> (i % 8 * 4) & 7;
    float error = w - e2m1_magnitude(code) * d;
    weights[i] = w * w;
    errors[i] = error * error;
  }

  *squares = {sum_tree(weights), sum_tree(errors)};
}

constexpr float kLeastSourceScale = 0x1p-60f;
constexpr float kMostSourceScale = 0x1p60f;

// The largest d whose inverse times kToE2m1 is no subnormal number.
constexpr float kMostByBits = 0.5f;

// Bits of a binary32 mantissa that INT4's and E2M1's magnitudes lack.
constexpr int kNibbleFreeBits = 21;

// Eight nibbles, a byte each.
__device__ __forceinline__ void spread(uint32_t nibbles, uint32_t *bytes) {
  uint32_t even = nibbles & 0x0f0f0f0fu;
  uint32_t odd = nibbles >> 4 & 0x0f0f0f0fu;
  bytes[0] = __byte_perm(even, odd, 0x5140);
  bytes[1] = __byte_perm(even, odd, 0x7362);
}

// The codes of a block under an ordinary scale and d = rule.factor(scale); half is Rule::halves of the scale.
template <typename Type>
__device__ __forceinline__ void encode_ordinary(const Block<Type> &block, float source_scale, float amax, float half,
                                                float d, uint2 *codes) {
  if constexpr (Block<Type>::kNarrow) {
    bool products = true;
    float half_inverse;
    if constexpr (Type::kCodes) {
      // In units of the source's scale and of kUnit. d / scale says how near midpoints are.
      half_inverse = 0.5f * approximate_reciprocal(d) * source_scale * (1 / Block<Type>::kUnit);
      float step = d * approximate_reciprocal(source_scale);
      products = half_inverse <= 0x1p127f && !has_near_midpoint<Block<Type>::kFreeBits>(step, 32);
    } else {
      half_inverse = half * approximate_reciprocal(d);
      products = half_inverse != 0;
    }

    bool by_bits = false;
#ifndef SPARKFP4_HARDWARE_E2M1
    if constexpr (!Type::kCodes) {
      by_bits = products && d <= kMostByBits && amax * half_inverse < 0.5f * kBelowSeven;
    }
#endif

    if (by_bits) {
      float by = half_inverse * (2 * kToE2m1);
      codes->x = encode_eight_by_bits<false>([&](int i) { return __fmul_rn(block.magnitude(i), by); });
      codes->y = encode_eight_by_bits<false>([&](int i) { return __fmul_rn(block.magnitude(8 + i), by); });
    } else if (products) {
      codes->x = encode_eight(Products<Type>{block, 0, half_inverse});
      codes->y = encode_eight(Products<Type>{block, 8, half_inverse});
    } else {
      auto weight = [&](int i) { return block.weight(i, source_scale); };
      codes->x = encode_eight(Quotients(weight, 0, d));
      codes->y = encode_eight(Quotients(weight, 8, d));
    }

    codes->x |= block.signs(0) & 0x88888888u;
    codes->y |= block.signs(1) & 0x88888888u;
  } else if constexpr (Type::kCodes) {
    // The codes of all magnitudes, eight or nine, in bytes; those above the block's largest may be anything.
    uint32_t table[3] = {};
    float inverse = approximate_reciprocal(d);
    float by = inverse * source_scale * kToE2m1;
    float step = d * approximate_reciprocal(source_scale);
    if (!has_near_midpoint<kNibbleFreeBits>(step, kMargin) && amax * inverse < kBelowSeven) {
      spread(encode_eight_by_bits<false>([&](int i) { return __fmul_rn(Block<Type>::nth(i), by); }), table);
      table[2] = add_half_code<false>(__fmul_rn(8.0f, by)) >> 22;
    } else {
      spread(encode_eight(Quotients([&](int i) { return Block<Type>::nth(i) * source_scale; }, 0, d)), table);
      table[2] = e2m1_index(8.0f * source_scale / d);
    }

    codes->x = block.look_up(0, table);
    codes->y = block.look_up(1, table);
  } else {
    auto weight = [&](int i) { return block.weight(i, 1); };
    codes->x = encode_eight(Quotients(weight, 0, d));
    codes->y = encode_eight(Quotients(weight, 8, d));
    // Below zero, unless so little that the quotient rounds to zero.
    uint32_t least = 0x80000000u + static_cast<uint32_t>(0.5f * d);
#pragma unroll
    for (int i = 0; i < 8; i++) {
      codes->x |= block.bits[i] > least ? 8u << 4 * i : 0;
      codes->y |= block.bits[8 + i] > least ? 8u << 4 * i : 0;
    }
  }
}

// Encodes a block by round to nearest; halves are the rule's.
template <typename Type>
__device__ __forceinline__ Encoded encode_block(const Block<Type> &block, const unsigned char *source,
                                                float source_scale, float amax, const Rule &rule,
                                                const float *halves) {
  Encoded encoded;
  bool ordinary = rule.ordinary && is_ordinary(amax);
  if constexpr (Type::kCodes) {
    ordinary &= source_scale >= kLeastSourceScale && source_scale <= kMostSourceScale;
  }

  if (ordinary) {
    Scale scale = rule.template block<Type::kSource == Bf16::kSource>(amax);
    encoded.byte = scale.byte;
    encoded.d = rule.factor(scale.value);
    float half = Block<Type>::kNarrow && !Type::kCodes ? halves[mantissa(scale.value)] : 0;
    encode_ordinary<Type>(block, source_scale, amax, half, encoded.d, &encoded.codes);
  } else {
    Encoded plain;
    encode_plainly<Type>(source, source_scale, rule.modelopt, rule.global_scale, &plain);
    encoded = plain;
  }

  return encoded;
}

// A block that a kernel's own way does not serve, apart so that the others have all registers; a unit of zeros, too.
// Gives its largest |w|'s bits.
template <typename Type>
__device__ __noinline__ uint32_t encode_apart(const unsigned char *source, float source_scale, const ScaleRule &made,
                                              Encoded *encoded) {
  Block<Type> block;
  block.load(source, is_aligned(source, Type::kBlockBytes < 16 ? 8 : 16));
  Rule rule;
  static_cast<ScaleRule &>(rule) = made;
  float amax = Block<Type>::value(block.largest(), source_scale);
  if (rule.zero) {
    *encoded = {make_uint2(0, 0), rule.modelopt ? 0x38u : 0x20u, 0};
  } else {
    *encoded = encode_block<Type>(block, source, source_scale, amax, rule, made.halves);
  }

  return __float_as_uint(amax);
}

// The rule of a unit, by the first warp.
__device__ __noinline__ inline void make_rule(const Encode &encode, uint32_t largest, ScaleRule *made) {
  Rule rule;
  rule.fill(encode, largest_value(encode.source, largest), threadIdx.x);
  if (threadIdx.x == 0) {
    *made = rule;
  }
}

// The rule, in shared memory: as the largest of a unit makes it or as the host has. An encode waits for the launch that
// begins its call, or finds the unit's largest, only to use what that leaves in the workspace. Null where an element of a
// unit is not finite: there is nothing to do. A unit's outcome is written, too, where that is the launch's to do.
__device__ __forceinline__ const ScaleRule *load_rule(const Batch &batch, const Encode &encode, Rule *rule) {
  __shared__ ScaleRule made;
  if (encode.of_unit) {
    wait_for_earlier_launches();
    uint32_t largest = largest_of_unit(encode.workspace);
    if (blockIdx.x == 0 && encode.outcome != nullptr) {
      write_outcome(batch, encode, largest);
    }

    if (largest >= infinity_bits(encode.source)) {
      return nullptr;
    }

    if (threadIdx.x < 32) {
      make_rule(encode, largest, &made);
    }
  } else if (threadIdx.x == 0) {
    made = encode.rule;
  }

  __syncthreads();
  static_cast<ScaleRule &>(*rule) = made;
  return &made;
}

// Adds the squares of a block that has been encoded.
template <typename Type, typename Sums>
__device__ __forceinline__ void add_squares(const Block<Type> &block, const unsigned char *source, float scale,
                                            const Encoded &encoded, Sums *sums) {
  Squares squares;
  if (encoded.d >= 0x1p-100f) {
    squares = block_squares([&](int j) { return block.weight(j, scale); }, encoded.codes, 0.5f * encoded.d);
  } else {
    squares_plainly<Type>(source, scale, encoded.codes, encoded.d, &squares);
  }

  sums->add(squares);
}

}  // namespace sparkfp4::cuda
