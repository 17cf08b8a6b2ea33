// What is done to a row before its codes are chosen: norms and the rotation.
#pragma once

#include "key_kernel.h"
#include "key_vectors.h"

namespace sparkfp4 {
namespace {

// Running pairs of a row's lanes.
struct LaneSums {
  Float lanes[kParts] = {};
  bool begun = false;

  __attribute__((always_inline)) void add(const Float *even, const Float *odd) {
    SPARKFP4_EACH_PART {
      Float pair = even[part] + odd[part];
      lanes[part] = begun ? lanes[part] + pair : pair;
    }

    begun = true;
  }

  __attribute__((always_inline)) void add_squares(const Block &x) {
    Block squares;
    SPARKFP4_EACH_PART {
      squares.even[part] = x.even[part] * x.even[part];
      squares.odd[part] = x.odd[part] * x.odd[part];
    }

    add(squares.even, squares.odd);
  }

  __attribute__((always_inline)) float total() const { return tree<Add>(lanes); }
};

// The totals of as many rows' sums: of kWidth together, of others one by one.
template <int kRows>
SPARKFP4_KEY_OP void totals(const LaneSums (&sums)[kRows], float (&result)[kRows]) {
  if constexpr (kRows == kWidth) {
    Float x[kWidth];
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; i++) {
      x[i] = fold_parts<Add>(sums[i].lanes);
    }

    store_vector(reinterpret_cast<unsigned char *>(result), sums_of_lanes<kWidth / 2>(x));
  } else {
    for (int i = 0; i < kRows; i++) {
      result[i] = sums[i].total();
    }
  }
}

SPARKFP4_KEY_OP float inverse_root(float x) { return 1.0f / __builtin_sqrtf(x); }

// The LayerNorm's weights in the order of blocks, once a call.
struct NormWeights {
  Block weight[kMaxKeyBlocks];
  Block bias[kMaxKeyBlocks];
};

template <int kBlocks>
SPARKFP4_KEY_OP LaneSums sum(const Block *x, int blocks) {
  LaneSums sum;
#pragma GCC unroll 4
  for (int b = 0; b < (kBlocks > 0 ? kBlocks : blocks); b++) {
    sum.add(x[b].even, x[b].odd);
  }

  return sum;
}

// Takes the mean off; gives the sums of what is left, squared.
template <int kBlocks>
SPARKFP4_KEY_OP LaneSums centre(Block *x, int blocks, float mean) {
  Float means = all(mean);
  LaneSums squares;
#pragma GCC unroll 4
  for (int b = 0; b < (kBlocks > 0 ? kBlocks : blocks); b++) {
    SPARKFP4_EACH_PART {
      x[b].even[part] -= means;
      x[b].odd[part] -= means;
    }

    squares.add_squares(x[b]);
  }

  return squares;
}

template <int kBlocks>
SPARKFP4_KEY_OP void scale_and_shift(Block *x, int blocks, float factor, const NormWeights &weights) {
  Float r = all(factor);
#pragma GCC unroll 4
  for (int b = 0; b < (kBlocks > 0 ? kBlocks : blocks); b++) {
    SPARKFP4_EACH_PART {
      x[b].even[part] = x[b].even[part] * r * weights.weight[b].even[part] + weights.bias[b].even[part];
      x[b].odd[part] = x[b].odd[part] * r * weights.weight[b].odd[part] + weights.bias[b].odd[part];
    }
  }
}

SPARKFP4_KEY_OP void butterfly(Float *a, Float *b) {
  Float sum = *a + *b;
  *b = *a - *b;
  *a = sum;
}

// The pairs of lanes that are kHalf apart.
template <int kHalf>
SPARKFP4_KEY_OP void rotate_lanes(Float *x) {
  if constexpr (kHalf < kWidth) {
    auto partners = SPARKFP4_LANES(partner<kHalf>);
    auto signs = SPARKFP4_LANES(sign_of<kHalf>);
    SPARKFP4_EACH_PART {
      // the upper lane is the partner less itself
#ifdef __AVX512F__
      // A product with 1 or -1 does not round.
      Float ones = as<Float>(as<Int>(all(1.0f)) | signs);
      Float other = shuffle(x[part], x[part], partners);
      x[part] = as<Float>(_mm512_fmadd_ps(as<__m512>(x[part]), as<__m512>(ones), as<__m512>(other)));
#else
      x[part] = shuffle(x[part], x[part], partners) + as<Float>(as<Int>(x[part]) ^ signs);
#endif
    }
  } else {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; part++) {
      if ((part & (kHalf / kWidth)) == 0) {
        butterfly(&x[part], &x[part + kHalf / kWidth]);
      }
    }
  }
}

template <int kBlocks>
SPARKFP4_KEY_OP void rotate(Block *x, int blocks, float factor) {
  const int count = kBlocks > 0 ? kBlocks : blocks;
#pragma GCC unroll 4
  for (int b = 0; b < count; b++) {
    SPARKFP4_EACH_PART { butterfly(&x[b].even[part], &x[b].odd[part]); }
    rotate_lanes<1>(x[b].even);
    rotate_lanes<1>(x[b].odd);
    rotate_lanes<2>(x[b].even);
    rotate_lanes<2>(x[b].odd);
    rotate_lanes<4>(x[b].even);
    rotate_lanes<4>(x[b].odd);
    rotate_lanes<8>(x[b].even);
    rotate_lanes<8>(x[b].odd);
  }

  for (int h = 1; h < count; h *= 2) {
#pragma GCC unroll 4
    for (int b = 0; b < count; b++) {
      if ((b & h) == 0) {
        SPARKFP4_EACH_PART {
          butterfly(&x[b].even[part], &x[b + h].even[part]);
          butterfly(&x[b].odd[part], &x[b + h].odd[part]);
        }
      }
    }
  }

  Float product = all(factor);
#pragma GCC unroll 4
  for (int b = 0; b < count; b++) {
    SPARKFP4_EACH_PART {
      x[b].even[part] *= product;
      x[b].odd[part] *= product;
    }
  }
}

}  // namespace
}  // namespace sparkfp4
