// Rows of keys, queries and latents: their codes, and where they go.
#pragma once

#include "key_norms.h"
#include "key_words.h"

namespace sparkfp4 {
namespace {

constexpr int64_t kKeyPrefetch = 4096;  // bytes ahead of the load
constexpr uint32_t kSix = 0x40c00000;
constexpr uint32_t kSmallestAmax = 0x01c00000;  // 6 * 2^-126

// 2^(127 - u)
SPARKFP4_KEY_OP float inverse_scale(uint32_t u) { return bits_as<float>((254 - u) << 23); }

// The squared errors under the scale u, in units of that scale or of the next: is the next one better?
SPARKFP4_KEY_OP bool next_is_better(const Block &x, uint32_t u) {
  Float inverse = all(inverse_scale(u));
  LaneSums errors;
  LaneSums errors_of_next;
  Block e;
  Block next;
  SPARKFP4_EACH_PART {
    for (int half = 0; half < 2; half++) {
      Float y = as<Float>(magnitudes((half == 0 ? x.even[part] : x.odd[part]) * inverse));
      Float q;
      Float q_of_next;
      narrow<1, 0>(at_most(as<Word>(y), kSix), &q);
      narrow<1, 0>(at_most(as<Word>(y * 0.5f), kSix), &q_of_next);
      Float d = y - q;
      Float d_of_next = y - 2.0f * q_of_next;
      (half == 0 ? e.even[part] : e.odd[part]) = d;
      (half == 0 ? next.even[part] : next.odd[part]) = d_of_next;
    }
  }

  errors.add_squares(e);
  errors_of_next.add_squares(next);
  return errors_of_next.total() < errors.total();
}

SPARKFP4_KEY_OP uint32_t scale_byte(sparkfp4_scale_rule rule, uint32_t amax, const Block &x) {
  switch (rule) {
    case SPARKFP4_CEIL:
      return (((amax > kSmallestAmax ? amax : kSmallestAmax) + 0x3fffff) >> 23) - 2;
    case SPARKFP4_EVEN:
      amax += 0x200000;
      [[fallthrough]];
    case SPARKFP4_FLOOR:
      return amax >> 23 > 2 ? (amax >> 23) - 2 : 0;
    default: {
      uint32_t smaller = amax >> 23 > 3 ? (amax >> 23) - 2 : 1;
      return smaller + next_is_better(x, smaller);
    }
  }
}

// The codes of a block times the inverse of its scale.
SPARKFP4_KEY_OP void encode_scaled(const Block &x, Float inverse, unsigned char *packed) {
  SPARKFP4_EACH_PART {
    Float even = x.even[part] * inverse;
    Float odd = x.odd[part] * inverse;
    Float ignored;
    Word low = narrow<1, 0>(at_most(magnitudes(even), kSix), &ignored) | (as<Word>(even) >> 28 & 8);
    Word high = narrow<1, 0>(at_most(magnitudes(odd), kSix), &ignored) << 4 | (as<Word>(odd) >> 24 & 0x80);
    store_vector(packed + kWidth * part, __builtin_convertvector(low | high, Bytes));
  }
}

// False where a value is not finite.
SPARKFP4_KEY_OP bool encode_block(const Block &x, sparkfp4_scale_rule rule, unsigned char *packed,
                                  unsigned char *scale) {
  uint32_t amax = largest_magnitude(x);
  if (amax >= kInfinityBits) {
    return false;
  }

  uint32_t u = scale_byte(rule, amax, x);
  *scale = static_cast<unsigned char>(u);
  encode_scaled(x, all(inverse_scale(u)), packed);
  return true;
}

// The scales of four blocks, which follow from their largest magnitudes alone, in quarters; kNotFinite where a value is
// not.
constexpr uint32_t kNotFinite = 255;

template <typename Blocks>
SPARKFP4_KEY_OP Word scales_of_four(const Blocks *x, sparkfp4_scale_rule rule, uint32_t *bytes) {
  Word lanes[4];
#pragma GCC unroll 4
  for (int b = 0; b < 4; b++) {
    lanes[b] = largest_of_lanes(x[b]);
  }

  Word amax = fold_four(lanes);
  Word u;
  if (rule == SPARKFP4_CEIL) {
    u = ((Max::of(amax, all_words(kSmallestAmax)) + 0x3fffff) >> 23) - 2;
  } else {
    u = Max::of((amax + (rule == SPARKFP4_EVEN ? 0x200000 : 0)) >> 23, all_words(2)) - 2;
  }

  u = amax >= kInfinityBits ? all_words(kNotFinite) : u;
  Bytes four = __builtin_convertvector(shuffle(u, u, SPARKFP4_LANES(quarter_firsts)), Bytes);
  std::memcpy(bytes, &four, sizeof *bytes);
  return u;
}

SPARKFP4_KEY_OP bool are_finite(uint32_t scales) {
  return (scales & ((scales & 0x7f7f7f7f) + 0x01010101) & 0x80808080) == 0;
}

// Calls encode(block, its quarter of the factors, place of its codes) for four blocks.
template <typename Vector, typename Encode>
SPARKFP4_KEY_OP void each_of_four(Vector factors, unsigned char *packed, const Encode &encode) {
  encode(0, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<0>)), packed);
  encode(1, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<1>)), packed + kKeyPackedBlock);
  encode(2, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<2>)), packed + 2 * kKeyPackedBlock);
  encode(3, shuffle(factors, factors, SPARKFP4_LANES(first_of_quarter<3>)), packed + 3 * kKeyPackedBlock);
}

// Four blocks at once; false where a value is not finite.
SPARKFP4_KEY_OP bool encode_four(const Block *x, sparkfp4_scale_rule rule, unsigned char *packed,
                                 unsigned char *scales) {
  uint32_t four;
  Word u = scales_of_four(x, rule, &four);
  std::memcpy(scales, &four, sizeof four);
  each_of_four(as<Float>((254 - u) << 23), packed, [&](int b, Float inverse, unsigned char *to)
                   __attribute__((always_inline)) { encode_scaled(x[b], inverse, to); });
  return are_finite(four);
}

// A row of four blocks of bfloat16 as they are. False, and nothing is written, where encode_four has to do it: a value is
// not finite, or a scale is too small.
SPARKFP4_KEY_OP bool encode_four_words(const unsigned char *source, sparkfp4_scale_rule rule, unsigned char *packed,
                                       unsigned char *scales) {
  WordBlock x[4];
#pragma GCC unroll 4
  for (int b = 0; b < 4; b++) {
    x[b] = load_words(source + b * 2 * kKeyBlock);
  }

  uint32_t four;
  Word u = scales_of_four(x, rule, &four);
  bool small = ((four - 0x01010101 * kLeastEighth) & ~four & 0x80808080) != 0;
  if (small || !are_finite(four)) {
    return false;
  }

  std::memcpy(scales, &four, sizeof four);
  Word eighths = (u - kLeastEighth) << 7;
  each_of_four(eighths | eighths << 16, packed, [&](int b, Word eighth, unsigned char *to)
                   __attribute__((always_inline)) { encode_words(x[b], eighth, to); });
  return true;
}

template <typename Type, int kBlocks>
int64_t insert_keys(const KeyTask &task) {
  const sparkfp4_key_form &form = *task.form;
  const int count = kBlocks > 0 ? kBlocks : static_cast<int>(form.dim / kKeyBlock);
  const int64_t row_bytes = form.dim * static_cast<int64_t>(sizeof(typename Type::Bits));
  const float factor = static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(form.dim)));
  [[maybe_unused]] const bool as_they_are =
      form.norm_weight == nullptr && !form.hadamard && form.rule != SPARKFP4_BEST_OF_TWO;
  NormWeights weights;
  if (form.norm_weight != nullptr) {
    for (int b = 0; b < count; b++) {
      weights.weight[b] = load_block<F32>(reinterpret_cast<const unsigned char *>(form.norm_weight + b * kKeyBlock));
      weights.bias[b] = load_block<F32>(reinterpret_cast<const unsigned char *>(form.norm_bias + b * kKeyBlock));
    }
  }

  for (int64_t row = 0; row < task.rows; row++) {
    unsigned char *packed = task.packed + row * count * kKeyPackedBlock;
    unsigned char *scales = task.scales + row * count;
    if (task.slots != nullptr) {
      int64_t slot = task.slots[row];
      if (slot < 0) {
        continue;
      }

      int64_t token = slot % task.pages->tokens;
      unsigned char *page =
          static_cast<unsigned char *>(task.pages->data) + slot / task.pages->tokens * task.pages->stride;
      packed = page + token * count * kKeyPackedBlock;
      scales = page + task.pages->tokens * count * kKeyPackedBlock + token * count;
    }

    const unsigned char *source = task.source + row * row_bytes;
    for (int64_t j = 0; j < row_bytes; j += 64) {
      __builtin_prefetch(source + kKeyPrefetch + j);
    }

    // What is written is read from memory first; slots mostly follow each other.
    __builtin_prefetch(packed + kKeyPrefetch / 4, 1);

    if constexpr (kBlocks == 4 && Type::kSource == Bf16::kSource) {
      if (as_they_are && encode_four_words(source, form.rule, packed, scales)) {
        continue;
      }
    }

    Block x[kBlocks > 0 ? kBlocks : kMaxKeyBlocks];
#pragma GCC unroll 4
    for (int b = 0; b < count; b++) {
      x[b] = load_block<Type>(source + b * (row_bytes / count));
    }

    if (form.norm_weight != nullptr) {
      layer_norm<kBlocks>(x, count, weights, form.eps);
    }

    if (form.round_to_bf16) {
#pragma GCC unroll 4
      for (int b = 0; b < count; b++) {
        round_bf16(&x[b]);
      }
    }

    if (form.hadamard) {
      rotate<kBlocks>(x, count, factor);
      if (form.round_to_bf16) {
        for (int b = 0; b < count; b++) {
          round_bf16(&x[b]);
        }
      }
    }

    bool finite = true;
    if (kBlocks == 4 && form.rule != SPARKFP4_BEST_OF_TWO) {
      finite = encode_four(x, form.rule, packed, scales);
    } else {
#pragma GCC unroll 4
      for (int b = 0; b < count; b++) {
        finite &= encode_block(x[b], form.rule, packed + b * kKeyPackedBlock, scales + b);
      }
    }

    if (!finite) {
      return row;
    }
  }

  return -1;
}

// The size of the indexers that there are has its row in registers.
template <typename Type>
int64_t keys(const KeyTask &task) {
  return task.form->dim == 4 * kKeyBlock ? insert_keys<Type, 4>(task) : insert_keys<Type, 0>(task);
}

template <typename Type>
SPARKFP4_KEY_OP float rms_factor(const unsigned char *source, int64_t cols, float eps) {
  LaneSums squares;
  for (int64_t i = 0; i < cols; i += kKeyBlock) {
    squares.add_squares(load_block<Type>(source + i * sizeof(typename Type::Bits)));
  }

  return inverse_root(squares.total() / static_cast<float>(cols) + eps);
}

template <typename Type>
SPARKFP4_KEY_OP Block rms_block(const unsigned char *source, const float *weight, float factor) {
  Block x = load_block<Type>(source);
  Block w = load_block<F32>(reinterpret_cast<const unsigned char *>(weight));
  Float r = all(factor);
  SPARKFP4_EACH_PART {
    x.even[part] = x.even[part] * r * w.even[part];
    x.odd[part] = x.odd[part] * r * w.odd[part];
  }

  return x;
}

template <typename Type>
int64_t norm(const NormTask &task) {
  constexpr int64_t kBytes = sizeof(typename Type::Bits);
  for (int64_t row = 0; row < task.rows; row++) {
    const unsigned char *source = task.source + row * task.cols * kBytes;
    unsigned char *out = task.out + row * task.cols * kBytes;
    float factor = rms_factor<Type>(source, task.cols, task.eps);
    Word largest[kParts] = {};
    for (int64_t i = 0; i < task.cols; i += kKeyBlock) {
      Block y = rms_block<Type>(source + i * kBytes, task.weight + i, factor);
      largest[0] = Max::of(largest[0], store_block<Type>(out + i * kBytes, y));
    }

    if (tree<Max>(largest) >= kStoredInfinity<Type>) {
      return row;
    }
  }

  return -1;
}

// A tile's codes and its scale.
SPARKFP4_KEY_OP bool encode_tile(const Block *y, unsigned char *codes, unsigned char *scale_out) {
  constexpr uint32_t kLargestE4m3 = 0x43e00000;  // 448
  uint32_t amax = 0;
  for (int b = 0; b < kTile / kKeyBlock; b++) {
    uint32_t of_block = largest_magnitude(y[b]);
    amax = of_block > amax ? of_block : amax;
  }

  if (amax >= kInfinityBits) {
    return false;
  }

  float scale = bits_as<float>(amax) / 448.0f;
  scale = scale > __FLT_MIN__ ? scale : __FLT_MIN__;
  std::memcpy(scale_out, &scale, sizeof scale);
  Float divisor = all(scale);
  for (int b = 0; b < kTile / kKeyBlock; b++) {
    SPARKFP4_EACH_PART {
      Float even = y[b].even[part] / divisor;
      Float odd = y[b].odd[part] / divisor;
      Float ignored;
      Word low = narrow<3, -6>(at_most(magnitudes(even), kLargestE4m3), &ignored) | (as<Word>(even) >> 24 & 0x80);
      Word high = narrow<3, -6>(at_most(magnitudes(odd), kLargestE4m3), &ignored) | (as<Word>(odd) >> 24 & 0x80);
      store_vector(codes + b * kKeyBlock + 2 * kWidth * part, __builtin_convertvector(low | high << 8, Halves));
    }
  }

  return true;
}

template <typename Type>
int64_t latents(const LatentTask &task) {
  constexpr int64_t kBytes = sizeof(typename Type::Bits);
  for (int64_t token = 0; token < task.tokens; token++) {
    int64_t slot = task.slots[token];
    if (slot < 0) {
      continue;
    }

    unsigned char *entry = static_cast<unsigned char *>(task.pages->data) +
                           slot / task.pages->tokens * task.pages->stride + slot % task.pages->tokens * kEntryBytes;
    const unsigned char *source = task.latent + token * kLatent * kBytes;
    float factor = rms_factor<Type>(source, kLatent, task.eps);
    bool finite = true;
    for (int tile = 0; tile < kTiles; tile++) {
      Block y[kTile / kKeyBlock];
      for (int b = 0; b < kTile / kKeyBlock; b++) {
        int64_t i = tile * kTile + b * kKeyBlock;
        y[b] = rms_block<Type>(source + i * kBytes, task.weight + i, factor);
        if (task.round_to_bf16) {
          round_bf16(&y[b]);
        }
      }

      finite &= encode_tile(y, entry + tile * kTile, entry + kLatent + tile * 4);
    }

    Word largest[kParts] = {};
    for (int i = 0; i < kRope; i += kKeyBlock) {
      Block rope = load_block<Type>(task.rope + (token * kRope + i) * kBytes);
      largest[0] = Max::of(largest[0], store_block<Bf16>(entry + kLatent + kTiles * 4 + 2 * i, rope));
    }

    if (!finite || tree<Max>(largest) >= kStoredInfinity<Bf16>) {
      return token;
    }
  }

  return -1;
}

constexpr KeyKernel key_kernel() {
  return {{keys<Bf16>, keys<F16>, keys<F32>},
          {norm<Bf16>, norm<F16>, norm<F32>},
          {latents<Bf16>, latents<F16>, latents<F32>}};
}

}  // namespace
}  // namespace sparkfp4
