// Rows of keys, queries and latents: what is done to them, and where they go.
#pragma once

#include "key_codes.h"

namespace sparkfp4 {
namespace {

constexpr int64_t kKeyPrefetch = 8192;  // bytes ahead of the row

// A key on its way.
template <int kBlocks>
struct Key {
  Block x[kBlocks > 0 ? kBlocks : kMaxKeyBlocks];
  int64_t row;
  unsigned char *packed;
  unsigned char *scales;
};

// Where a row's codes and scales go; false where they go nowhere.
template <int kBlocks>
SPARKFP4_KEY_OP bool find_place(const KeyTask &task, int64_t row, int blocks, Key<kBlocks> *key) {
  const int count = kBlocks > 0 ? kBlocks : blocks;
  key->row = row;
  if (task.slots == nullptr) {
    key->packed = task.packed + row * count * kKeyPackedBlock;
    key->scales = task.scales + row * count;
    return true;
  }

  int64_t slot = task.slots[row];
  if (slot < 0) {
    return false;
  }

  int64_t tokens = task.pages->tokens;
  unsigned char *page = static_cast<unsigned char *>(task.pages->data) + slot / tokens * task.pages->stride;
  key->packed = page + slot % tokens * count * kKeyPackedBlock;
  key->scales = page + tokens * count * kKeyPackedBlock + slot % tokens * count;
  return true;
}

template <int kBlocks>
SPARKFP4_KEY_OP void round_bf16(Key<kBlocks> *key, int blocks) {
  const int count = kBlocks > 0 ? kBlocks : blocks;
#pragma GCC unroll 4
  for (int b = 0; b < count; b++) {
    round_bf16(&key->x[b]);
  }
}

// Asks for rows to come, and for what will be written, which is read from memory first; slots mostly follow each other.
SPARKFP4_KEY_OP void prefetch_ahead(const unsigned char *source, int64_t row_bytes, const unsigned char *packed) {
  for (int64_t j = 0; j < row_bytes; j += 64) {
    __builtin_prefetch(source + kKeyPrefetch + j);
  }

  __builtin_prefetch(packed + kKeyPrefetch / 4, 1);
}

// False where a value is not finite.
template <int kBlocks>
SPARKFP4_KEY_OP bool encode_key(const Key<kBlocks> &key, sparkfp4_scale_rule rule, int blocks) {
  const int count = kBlocks > 0 ? kBlocks : blocks;
  if (kBlocks == 4 && rule != SPARKFP4_BEST_OF_TWO) {
#ifdef __AVX512BW__
    // Where codes of words come from a table.
    WordBlock words[4];
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
      words[b] = to_words(key.x[b]);
    }

    if (__builtin_expect(encode_four_words(words, rule, key.packed, key.scales), 1)) {
      return true;
    }
#endif
    return encode_four(key.x, rule, key.packed, key.scales);
  }

  bool finite = true;
#pragma GCC unroll 4
  for (int b = 0; b < count; b++) {
    finite &= encode_block(key.x[b], rule, key.packed + b * kKeyPackedBlock, key.scales + b);
  }

  return finite;
}

// What a LayerNorm does to rows before it scales them, and the factor of each.
template <int kBlocks, int kRows>
SPARKFP4_KEY_OP void centre_rows(Key<kBlocks> (&keys)[kRows], int held, int blocks, float eps,
                                 float (&factors)[kRows]) {
  const float size = static_cast<float>((kBlocks > 0 ? kBlocks : blocks) * kKeyBlock);
  LaneSums sums[kRows];
  float means[kRows];
  for (int i = 0; i < held; i++) {
    sums[i] = sum<kBlocks>(keys[i].x, blocks);
  }

  totals(sums, means);
  for (int i = 0; i < held; i++) {
    sums[i] = centre<kBlocks>(keys[i].x, blocks, means[i] / size);
  }

  totals(sums, factors);
  for (float &factor : factors) {
    factor = inverse_root(factor / size + eps);
  }
}

// Rows go together: their sums are chains over all lanes, for whose end the next would wait, and share the last steps.
template <typename Type, int kBlocks>
int64_t insert_keys(const KeyTask &task) {
  constexpr int kTogether = kBlocks == 4 ? kWidth : 1;
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

  Key<kBlocks> keys[kTogether];
  for (int64_t row = 0; row < task.rows;) {
    int held = 0;
    for (; held < kTogether && row < task.rows; row++) {
      Key<kBlocks> *key = keys + held;
      if (!find_place(task, row, count, key)) {
        continue;
      }

      const unsigned char *source = task.source + row * row_bytes;
      if constexpr (kBlocks == 4 && Type::kSource == Bf16::kSource) {
        if (as_they_are) {
          prefetch_ahead(source, row_bytes, key->packed);
          if (encode_four_words(source, form.rule, key->packed, key->scales)) {
            continue;
          }
        }
      }

#pragma GCC unroll 4
      for (int b = 0; b < count; b++) {
        key->x[b] = load_block<Type>(source + b * (row_bytes / count));
      }

      held++;
    }

    float factors[kTogether] = {};
    if (form.norm_weight != nullptr) {
      centre_rows(keys, held, count, form.eps, factors);
    }

    for (int i = 0; i < held; i++) {
      // Here, one by one: all of them together are more than the processor can have on their way.
      prefetch_ahead(task.source + keys[i].row * row_bytes, row_bytes, keys[i].packed);
      if (form.norm_weight != nullptr) {
        scale_and_shift<kBlocks>(keys[i].x, count, factors[i], weights);
      }

      if (form.round_to_bf16) {
        round_bf16(&keys[i], count);
      }

      if (form.hadamard) {
        rotate<kBlocks>(keys[i].x, count, factor);
        if (form.round_to_bf16) {
          round_bf16(&keys[i], count);
        }
      }

      if (!encode_key(keys[i], form.rule, count)) {
        return keys[i].row;
      }
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
      store_vector(codes + b * kKeyBlock + 2 * kWidth * part, to_halves(low | high << 8));
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
