// MXFP4 of keys, queries and plain rows, of any length and at any address; what keys_aligned.cu takes goes there.
#include "keys.cuh"

namespace sparkfp4::cuda {
namespace {

// A row: blocks of a count that is known, or up to the largest, which then are in local memory.
template <int kBlocks>
struct Row {
  static constexpr int kUnroll = kBlocks > 0 ? kBlocks : 1;
  Pair pairs[kBlocks > 0 ? kBlocks : kMaxKeyBlocks];
};

#define SPARKFP4_EACH_BLOCK _Pragma("unroll kUnroll") for (int b = 0; b < count; b++)

template <int kBlocks>
__device__ __forceinline__ void layer_norm(Row<kBlocks> &row, int count, const Row<kBlocks> &weight,
                                           const Row<kBlocks> &bias, float eps) {
  constexpr int kUnroll = Row<kBlocks>::kUnroll;
  Pair *x = row.pairs;
  const float size = static_cast<float>(count * kKeyBlock);
  float sum = 0;
  SPARKFP4_EACH_BLOCK {
    float pair = pair_sum(x[b]);
    sum = b == 0 ? pair : __fadd_rn(sum, pair);
  }

  float mean = __fdiv_rn(team_sum(sum), size);
  SPARKFP4_EACH_BLOCK {
    x[b] = {__fsub_rn(x[b].even, mean), __fsub_rn(x[b].odd, mean)};
    float pair = pair_squares(x[b]);
    sum = b == 0 ? pair : __fadd_rn(sum, pair);
  }

  float r = inverse_root(__fadd_rn(__fdiv_rn(team_sum(sum), size), eps));
  SPARKFP4_EACH_BLOCK {
    const Pair &w = weight.pairs[b];
    x[b] = {__fadd_rn(__fmul_rn(__fmul_rn(x[b].even, r), w.even), bias.pairs[b].even),
            __fadd_rn(__fmul_rn(__fmul_rn(x[b].odd, r), w.odd), bias.pairs[b].odd)};
  }
}

__device__ __forceinline__ void butterfly(float *a, float *b) {
  float sum = __fadd_rn(*a, *b);
  *b = __fsub_rn(*a, *b);
  *a = sum;
}

// The upper lane is the partner less itself.
__device__ __forceinline__ float rotate_lanes(float x, int half) {
  float partner = from_partner(x, half);
  return team_lane() & half ? __fsub_rn(partner, x) : __fadd_rn(partner, x);
}

template <int kBlocks>
__device__ __forceinline__ void rotate(Row<kBlocks> &row, int count, float factor) {
  constexpr int kUnroll = Row<kBlocks>::kUnroll;
  Pair *x = row.pairs;
  SPARKFP4_EACH_BLOCK {
    butterfly(&x[b].even, &x[b].odd);
#pragma unroll
    for (int half = 1; half < kTeam; half *= 2) {
      x[b] = {rotate_lanes(x[b].even, half), rotate_lanes(x[b].odd, half)};
    }
  }

#pragma unroll kUnroll
  for (int h = 1; h < count; h *= 2) {
    SPARKFP4_EACH_BLOCK {
      if ((b & h) == 0) {
        butterfly(&x[b].even, &x[b + h].even);
        butterfly(&x[b].odd, &x[b + h].odd);
      }
    }
  }

  SPARKFP4_EACH_BLOCK { x[b] = {__fmul_rn(x[b].even, factor), __fmul_rn(x[b].odd, factor)}; }
}

template <int kBlocks>
__device__ __forceinline__ void round_row(Row<kBlocks> &row, int count) {
  constexpr int kUnroll = Row<kBlocks>::kUnroll;
  SPARKFP4_EACH_BLOCK { row.pairs[b] = round_bf16(row.pairs[b]); }
}

// y less its E2M1 value, in squares over the team's lanes; and the same of y / 2, in units of y.
__device__ bool next_is_better(const Pair &x, uint32_t u) {
  float inverse = inverse_scale(u);
  float e[2];
  float next[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float y = __uint_as_float(magnitude(__fmul_rn(i == 0 ? x.even : x.odd, inverse)));
    float q;
    float q_of_next;
    narrow<1, 0>(min(__float_as_uint(y), kSix), &q);
    narrow<1, 0>(min(__float_as_uint(__fmul_rn(y, 0.5f)), kSix), &q_of_next);
    e[i] = __fsub_rn(y, q);
    next[i] = __fsub_rn(y, __fmul_rn(2.0f, q_of_next));
  }

  float errors = team_sum(pair_squares({e[0], e[1]}));
  float errors_of_next = team_sum(pair_squares({next[0], next[1]}));
  return errors_of_next < errors;
}

// The E2M1 code of a magnitude y, above the bits of kMagic: f(y) = min(2 y, y + 2, y / 2 + 4), 7 at most, rounded to an
// integer. Rounding is monotonic, so the least of the rounded lines does; each is rounded once, by its addition.
constexpr float kMagic = 0x1.8p23f;
constexpr uint32_t kMagicBits = 0x4b400000;

__device__ __forceinline__ uint32_t code_of(float y) {
  float first = __fmaf_rn(y, 2.0f, kMagic);
  float second = __fadd_rn(y, kMagic + 2.0f);
  float third = __fmaf_rn(y, 0.5f, kMagic + 4.0f);
  return __float_as_uint(fminf(fminf(first, second), fminf(third, kMagic + 7.0f)));
}

// A pair's byte.
__device__ __forceinline__ uint32_t codes_of(const Pair &x, float inverse) {
  uint32_t low = code_of(__fmul_rn(fabsf(x.even), inverse));
  uint32_t high = code_of(__fmul_rn(fabsf(x.odd), inverse));
  uint32_t codes = high * 16 + low - static_cast<uint32_t>(17 * static_cast<uint64_t>(kMagicBits));
  return codes | (__float_as_uint(x.even) >> 28 & 8) | (__float_as_uint(x.odd) >> 24 & 0x80);
}

// Lanes 4 i to 4 i + 3 have bytes of columns 4 i to 4 i + 3 of four rows, a row a byte of the word; each gets those of
// one row, its own number's.
__device__ __forceinline__ uint32_t transposed(uint32_t word) {
  bool upper = team_lane() & 1;
  uint32_t other = from_partner(word, 1);
  word = upper ? __byte_perm(other, word, 0x7351) : __byte_perm(word, other, 0x6240);
  // now bytes are row r, columns 0, 1 and row r + 2, columns 0, 1, r being the lane's lowest bit
  upper = team_lane() & 2;
  other = from_partner(word, 2);
  return upper ? __byte_perm(other, word, 0x7632) : __byte_perm(word, other, 0x5410);
}

// The codes of a row of four blocks and its scales; present of them are there. False where a lane finds a value that
// is not finite, in *bad_block.
__device__ __forceinline__ bool encode_four(const Pair *x, sparkfp4_scale_rule rule, int present, bool active,
                                            unsigned char *packed, bool aligned, unsigned char *scales,
                                            bool scales_aligned, int *bad_block) {
  int lane = team_lane();
  uint32_t largest[kFour];
#pragma unroll
  for (int b = 0; b < kFour; b++) {
    largest[b] = larger_magnitude(x[b]);
  }

  uint32_t amax = largest_of_four(largest);
  uint32_t u = scale_byte(rule, amax) & 0xff;
  uint32_t bytes = u << 8 * (lane / 4);
  bytes |= from_partner(bytes, 4);
  bytes |= from_partner(bytes, 8);
  if (rule == SPARKFP4_BEST_OF_TWO) {
#pragma unroll
    for (int b = 0; b < kFour; b++) {
      bytes += static_cast<uint32_t>(next_is_better(x[b], bytes >> 8 * b & 0xff)) << 8 * b;
    }
  }

  uint32_t word = 0;
#pragma unroll
  for (int b = 0; b < kFour; b++) {
    word |= codes_of(x[b], inverse_scale(bytes >> 8 * b & 0xff)) << 8 * b;
  }

  // the lane has the codes 4 (l / 4) to 4 (l / 4) + 3 of block l % 4
  word = transposed(word);
  if (active && lane % 4 < present) {
    store_word(packed + lane % 4 * kKeyPackedBlock + lane / 4 * 4, word, aligned);
  }

  if (active && present == kFour && scales_aligned) {
    if (lane == 0) {
      *reinterpret_cast<uint32_t *>(scales) = bytes;
    }
  } else if (active && lane < present) {
    scales[lane] = static_cast<unsigned char>(bytes >> 8 * lane);
  }

  *bad_block = lane / 4;
  return amax < kInfinityBits;
}

// The same of rows of any length.
__device__ __forceinline__ bool encode_each(const Pair *x, int count, sparkfp4_scale_rule rule, bool active,
                                            unsigned char *packed, unsigned char *scales) {
  bool finite = true;
#pragma unroll 1
  for (int b = 0; b < count; b++) {
    uint32_t amax = team_max(larger_magnitude(x[b]));
    finite &= amax < kInfinityBits;
    uint32_t u = scale_byte(rule, amax) & 0xff;
    if (rule == SPARKFP4_BEST_OF_TWO) {
      u += next_is_better(x[b], u);
    }

    if (active) {
      packed[b * kKeyPackedBlock + team_lane()] = static_cast<unsigned char>(codes_of(x[b], inverse_scale(u)));
      if (team_lane() == 0) {
        scales[b] = static_cast<unsigned char>(u);
      }
    }
  }

  return finite;
}

template <typename Type, int kBlocks, bool kNorm, Layout kLayout>
__global__ void __launch_bounds__(kThreads) rows_kernel(const __grid_constant__ KeyRows rows,
                                                        const __grid_constant__ QueryHeads heads, int64_t row_blocks) {
  constexpr int kUnroll = Row<kBlocks>::kUnroll;
  constexpr int kPairBytes = PairBits<Type>::kBytes;
  constexpr int kBlockBytes = kTeam * kPairBytes;
  const int count = kBlocks > 0 ? kBlocks : static_cast<int>(rows.form.dim / kKeyBlock);
  const int lane = team_lane();
  const bool aligned = is_aligned(rows.source, kPairBytes);
  bool packed_aligned = is_aligned(rows.packed, 4);
  bool scales_aligned = is_aligned(rows.scales, 4);
  if constexpr (kLayout == Layout::kPages) {
    packed_aligned = scales_aligned = is_aligned(rows.pages.data, 4) && rows.pages.stride % 4 == 0;
  }

  Row<kBlocks> weight;
  Row<kBlocks> bias;
  if constexpr (kNorm) {
    SPARKFP4_EACH_BLOCK {
      int i = b * kKeyBlock + 2 * lane;
      weight.pairs[b] = {rows.form.norm_weight[i], rows.form.norm_weight[i + 1]};
      bias.pairs[b] = {rows.form.norm_bias[i], rows.form.norm_bias[i + 1]};
    }
  }

  // What the next row has in memory is on its way while a row is worked on.
  PairBits<Type> ahead[kBlocks > 0 ? kBlocks : 1];
  auto source_row = [&](int64_t row) {
    if constexpr (kLayout == Layout::kQueries) {
      int64_t token = quotient(row, heads.padded);
      int64_t head = row - token * heads.padded.value;
      return head < heads.heads ? token * heads.heads + head : int64_t{-1};
    } else {
      return row;
    }
  };
  auto read_ahead = [&](int64_t row) {
    row = source_row(min(row, rows.rows - 1));
    if constexpr (kBlocks > 0) {
      const unsigned char *source = rows.source + row * count * kBlockBytes + lane * kPairBytes;
#pragma unroll
      for (int b = 0; b < kBlocks; b++) {
        ahead[b] = {};
        if (kLayout == Layout::kPages || (row >= 0 && row * kBlocks + b < rows.blocks)) {
          ahead[b].load(source + b * kBlockBytes, aligned);
        }
      }
    }
  };
  int64_t first = first_rows() + team();
  if (first - team() < rows.rows) {
    read_ahead(first);
  }

  for (int64_t row = first; row - team() < rows.rows; row += row_step()) {
    Row<kBlocks> x;
    if constexpr (kBlocks > 0) {
#pragma unroll
      for (int b = 0; b < kBlocks; b++) {
        x.pairs[b] = ahead[b].values();
      }

      if (row + row_step() - team() < rows.rows) {
        read_ahead(row + row_step());
      }
    } else {
      const unsigned char *source = rows.source + min(row, rows.rows - 1) * count * kBlockBytes + lane * kPairBytes;
#pragma unroll 1
      for (int b = 0; b < count; b++) {
        x.pairs[b] = load_pair<Type>(source + b * kBlockBytes, aligned);
      }
    }

    bool active = row < rows.rows;
    int present = kFour;
    unsigned char *packed = rows.packed + row * count * kKeyPackedBlock;
    unsigned char *scales = rows.scales + row * count;
    bool row_packed_aligned = packed_aligned;
    bool row_scales_aligned = scales_aligned;
    if constexpr (kLayout == Layout::kBlocks) {
      present = static_cast<int>(min(int64_t{kFour}, rows.blocks - row * kFour));
    } else if constexpr (kLayout == Layout::kPages) {
      Place place;
      active = active && place_of(rows.pages, rows.slots[row], row, lane == 0 ? rows.bad : nullptr, &place);
      if (active) {
        packed = place.page + place.token * count * kKeyPackedBlock;
        scales = place.page + rows.pages.tokens.value * count * kKeyPackedBlock + place.token * count;
      }
    } else if (active && lane == 0) {
      int64_t i = source_row(row);
      float scaled = i < 0 ? 0.0f : __fmul_rn(weight_of(heads, i), heads.weight_scale);
      store_word(heads.weights_out + 4 * row, __float_as_uint(scaled), is_aligned(heads.weights_out, 4));
    }

    if constexpr (kNorm) {
      layer_norm<kBlocks>(x, count, weight, bias, rows.form.eps);
    }

    if constexpr (kLayout == Layout::kPages) {
      if (rows.form.round_to_bf16) {
        round_row<kBlocks>(x, count);
      }

      if (rows.form.hadamard) {
        rotate<kBlocks>(x, count, rows.rotation);
        if (rows.form.round_to_bf16) {
          round_row<kBlocks>(x, count);
        }
      }
    }

    if constexpr (kBlocks > 0) {
      int bad_block;
      bool finite = encode_four(x.pairs, rows.form.rule, present, active, packed, row_packed_aligned, scales,
                                row_scales_aligned, &bad_block);
      if constexpr (kLayout == Layout::kQueries) {
        // what has padding is zeros, scales too
        if (active && source_row(row) < 0 && lane == 0) {
          store_word(scales, 0, row_scales_aligned);
        }
      }

      if (active && !finite && lane % 4 == 0) {
        int64_t bad = kLayout == Layout::kBlocks    ? (row * kFour + bad_block) / row_blocks
                      : kLayout == Layout::kQueries ? source_row(row)
                                                    : row;
        mark(&rows.bad->encoded, bad);
      }
    } else {
      bool finite = encode_each(x.pairs, count, rows.form.rule, active, packed, scales);
      if (active && !finite && lane == 0) {
        mark(&rows.bad->encoded, row);
      }
    }
  }
}

template <int kBlocks, bool kNorm, Layout kLayout>
cudaError_t launch(const KeyRows &rows, const QueryHeads &heads, int64_t row_blocks, cudaStream_t stream) {
  if (rows.rows == 0) {
    return cudaSuccess;
  }

  auto kernel = rows.dtype == SPARKFP4_BF16  ? rows_kernel<Bf16, kBlocks, kNorm, kLayout>
                : rows.dtype == SPARKFP4_F16 ? rows_kernel<F16, kBlocks, kNorm, kLayout>
                                             : rows_kernel<F32, kBlocks, kNorm, kLayout>;
  int grid;
  cudaError_t error = row_grid(kernel, rows.rows, &grid);
  if (error == cudaSuccess) {
    kernel<<<grid, kThreads, 0, stream>>>(rows, heads, row_blocks);
    error = cudaGetLastError();
  }

  return error;
}

}  // namespace

cudaError_t launch_blocks(const KeyRows &rows, int64_t row_blocks, cudaStream_t stream) {
  return aligned_blocks(rows) ? launch_aligned_blocks(rows, row_blocks, stream)
                              : launch<kFour, false, Layout::kBlocks>(rows, {}, row_blocks, stream);
}

cudaError_t launch_keys(const KeyRows &rows, cudaStream_t stream) {
  if (aligned_keys(rows)) {
    return launch_aligned_keys(rows, stream);
  }

  bool four = rows.form.dim == kFour * kKeyBlock;
  if (rows.form.norm_weight == nullptr) {
    return four ? launch<kFour, false, Layout::kPages>(rows, {}, 1, stream)
                : launch<0, false, Layout::kPages>(rows, {}, 1, stream);
  }

  return four ? launch<kFour, true, Layout::kPages>(rows, {}, 1, stream)
              : launch<0, true, Layout::kPages>(rows, {}, 1, stream);
}

cudaError_t launch_queries(const KeyRows &rows, const QueryHeads &heads, cudaStream_t stream) {
  return aligned_blocks(rows) ? launch_aligned_queries(rows, heads, stream)
                              : launch<kFour, false, Layout::kQueries>(rows, heads, 1, stream);
}

}  // namespace sparkfp4::cuda
