// MXFP4 of rows of 128 at aligned addresses as they are: four threads a row, each with eight elements of every block. A
// thread concludes for the block of its number, and writes its 16 bytes of codes.
#include "words.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kQuad = 4;
constexpr int kTurnRows = kThreads / kQuad;
constexpr int kRowElements = kFour * kKeyBlock;

__device__ __forceinline__ int quad_lane() { return threadIdx.x % kQuad; }

// Of lanes [block][lane] of all threads, the sum of the block of the thread's number.
__device__ __forceinline__ float own_block_sum(const float (*lanes)[kQuad]) {
  float two[2][kQuad];
  bool upper = quad_lane() & 2;
#pragma unroll
  for (int b = 0; b < 2; b++) {
#pragma unroll
    for (int l = 0; l < kQuad; l++) {
      two[b][l] = __fadd_rn(upper ? lanes[b + 2][l] : lanes[b][l], from_partner(upper ? lanes[b][l] : lanes[b + 2][l], 2));
    }
  }

  float own[kQuad];
  upper = quad_lane() & 1;
#pragma unroll
  for (int l = 0; l < kQuad; l++) {
    own[l] = __fadd_rn(upper ? two[1][l] : two[0][l], from_partner(upper ? two[0][l] : two[1][l], 1));
  }

  return __fadd_rn(__fadd_rn(own[0], own[2]), __fadd_rn(own[1], own[3]));
}

template <typename T>
__device__ __forceinline__ T of_block(T own, int block) {
  return __shfl_sync(0xffffffffu, own, block, kQuad);
}

// Whether the scale above the thread's u has the smaller error for its block.
__device__ __forceinline__ bool next_is_better(const float (*x)[kEight], uint32_t u) {
  float errors[kFour][kQuad];
  float errors_of_next[kFour][kQuad];
  float inverse = inverse_scale(u);
#pragma unroll
  for (int b = 0; b < kFour; b++) {
    square_errors(x[b], of_block(inverse, b), errors[b], errors_of_next[b]);
  }

  return own_block_sum(errors_of_next) < own_block_sum(errors);
}

// The largest magnitude, as bits of binary32, of the block of the thread's number.
__device__ __forceinline__ uint32_t own_block_amax(const EightPairs *pairs) {
  uint32_t blocks[kFour];
#pragma unroll
  for (int b = 0; b < kFour; b++) {
    blocks[b] = pairs[b].largest();
  }

  // Two blocks a word.
  uint32_t first = max_pair<Bf16>(__byte_perm(blocks[0], blocks[1], 0x5410), __byte_perm(blocks[0], blocks[1], 0x7632));
  uint32_t last = max_pair<Bf16>(__byte_perm(blocks[2], blocks[3], 0x5410), __byte_perm(blocks[2], blocks[3], 0x7632));
  bool upper = quad_lane() & 2;
  uint32_t two = max_pair<Bf16>(upper ? last : first, from_partner(upper ? first : last, 2));
  two = max_pair<Bf16>(two, from_partner(two, 1));
  return quad_lane() & 1 ? two & 0xffff0000u : two << 16;
}

template <typename Type, bool kCeil, Layout kLayout>
__global__ void __launch_bounds__(kThreads, kCeil && sizeof(typename Type::Bits) == 2 ? 3 : 2)
    aligned_kernel(const __grid_constant__ KeyRows rows, const __grid_constant__ QueryHeads heads, int64_t row_blocks) {
  constexpr bool kIsBf16 = Type::kSource == Bf16::kSource;
  constexpr int kElement = sizeof(typename Type::Bits);
  const int own = quad_lane();
  // What the next row has in memory is on its way while a row is worked on: its elements, and its slot, or the row of
  // the source that it is, -1 where it is padding.
  Eight<Type> ahead[kFour];
  int64_t place_ahead;
  auto read_ahead = [&](int64_t row) {
    row = min(row, rows.rows - 1);
    int64_t from = row;
    if constexpr (kLayout == Layout::kPages) {
      place_ahead = rows.slots[row];
    } else if constexpr (kLayout == Layout::kQueries) {
      int64_t token = quotient(row, heads.padded);
      int64_t head = row - token * heads.padded.value;
      from = place_ahead = head < heads.heads ? token * heads.heads + head : int64_t{-1};
    }

    const unsigned char *source = rows.source + (from * kRowElements + own * kEight) * kElement;
#pragma unroll
    for (int b = 0; b < kFour; b++) {
      if (kLayout == Layout::kPages || (kLayout == Layout::kQueries ? from >= 0 : row * kFour + b < rows.blocks)) {
        ahead[b].load(source + b * kKeyBlock * kElement);
      } else {
        ahead[b] = {};
      }
    }
  };
  const int64_t step = static_cast<int64_t>(gridDim.x) * kTurnRows;
  int64_t row = static_cast<int64_t>(blockIdx.x) * kTurnRows + threadIdx.x / kQuad;
  // The warp's first row: all of a warp take every step.
  int64_t first = row - threadIdx.x % 32 / kQuad;
  if (first < rows.rows) {
    read_ahead(row);
  }

  for (; first < rows.rows; first += step, row += step) {
    float x[kFour][kEight];
    EightPairs pairs[kFour];
#pragma unroll
    for (int b = 0; b < kFour; b++) {
      ahead[b].values(x[b]);
      if constexpr (kIsBf16) {
        pairs[b].set(ahead[b].words[0]);
      } else {
        pairs[b].set(x[b]);
      }
    }

    const int64_t place = place_ahead;
    if (first + step < rows.rows) {
      read_ahead(row + step);
    }

    uint32_t amax = own_block_amax(pairs);
    uint32_t u = scale_byte(kCeil ? SPARKFP4_CEIL : rows.form.rule, amax) & 0xff;
    if (!kCeil && rows.form.rule == SPARKFP4_BEST_OF_TWO) {
      u += next_is_better(x, u);
    }

    uint32_t inverse = inverse_pair(u);
    uint32_t words[kFour];
#pragma unroll
    for (int b = 0; b < kFour; b++) {
      words[b] = codes_of_eight<kCeil>(pairs[b], of_block(inverse, b));
    }

    transpose_four<1>(words);
    unsigned char *packed = rows.packed + row * (kFour * kKeyPackedBlock);
    unsigned char *scales = rows.scales + row * kFour;
    bool active = row < rows.rows;
    if constexpr (kLayout == Layout::kPages) {
      Place token;
      active = active && place_of(rows.pages, place, row, own == 0 ? rows.bad : nullptr, &token);
      if (active) {
        packed = token.page + token.token * (kFour * kKeyPackedBlock);
        scales = token.page + rows.pages.tokens.value * (kFour * kKeyPackedBlock) + token.token * kFour;
      }
    } else if constexpr (kLayout == Layout::kBlocks) {
      active = row * kFour + own < rows.blocks;
    } else if (active && own == 0) {
      float scaled = place < 0 ? 0.0f : __fmul_rn(weight_of(heads, place), heads.weight_scale);
      store_word(heads.weights_out + 4 * row, __float_as_uint(scaled), is_aligned(heads.weights_out, 4));
    }

    if (active) {
      // what has padding is zeros, scales too
      bool padding = kLayout == Layout::kQueries && place < 0;
      reinterpret_cast<uint4 *>(packed)[own] = make_uint4(words[0], words[1], words[2], words[3]);
      scales[own] = static_cast<unsigned char>(padding ? 0 : u);
      if (amax >= kInfinityBits) {
        mark(&rows.bad->encoded, kLayout == Layout::kBlocks    ? (row * kFour + own) / row_blocks
                                 : kLayout == Layout::kQueries ? place
                                                               : row);
      }
    }
  }
}

template <typename Type, Layout kLayout>
auto kernel_of(const sparkfp4_key_form &form) {
  return form.rule == SPARKFP4_CEIL ? aligned_kernel<Type, true, kLayout> : aligned_kernel<Type, false, kLayout>;
}

template <Layout kLayout>
cudaError_t launch(const KeyRows &rows, const QueryHeads &heads, int64_t row_blocks, cudaStream_t stream) {
  if (rows.rows == 0) {
    return cudaSuccess;
  }

  auto kernel = rows.dtype == SPARKFP4_BF16  ? kernel_of<Bf16, kLayout>(rows.form)
                : rows.dtype == SPARKFP4_F16 ? kernel_of<F16, kLayout>(rows.form)
                                             : kernel_of<F32, kLayout>(rows.form);
  int grid;
  cudaError_t error = grid_size(kernel, (rows.rows + kTurnRows - 1) / kTurnRows, &grid);
  if (error == cudaSuccess) {
    kernel<<<grid, kThreads, 0, stream>>>(rows, heads, row_blocks);
    error = cudaGetLastError();
  }

  return error;
}

}  // namespace

bool aligned_blocks(const KeyRows &rows) {
  return is_aligned(rows.source, kWordBytes) && is_aligned(rows.packed, kWordBytes);
}

bool aligned_keys(const KeyRows &rows) {
  return rows.form.dim == kRowElements && is_aligned(rows.source, kWordBytes) &&
         is_aligned(rows.pages.data, kWordBytes) && rows.pages.stride % kWordBytes == 0;
}

cudaError_t launch_aligned_blocks(const KeyRows &rows, int64_t row_blocks, cudaStream_t stream) {
  return launch<Layout::kBlocks>(rows, {}, row_blocks, stream);
}

cudaError_t launch_aligned_keys(const KeyRows &rows, cudaStream_t stream) {
  bool formed = rows.form.norm_weight != nullptr || rows.form.round_to_bf16 || rows.form.hadamard;
  return !formed                        ? launch<Layout::kPages>(rows, {}, 1, stream)
         : takes_normed_keys(rows.form) ? launch_normed_keys(rows, stream)
                                        : launch_formed_keys(rows, stream);
}

cudaError_t launch_aligned_queries(const KeyRows &rows, const QueryHeads &heads, cudaStream_t stream) {
  return launch<Layout::kQueries>(rows, heads, 1, stream);
}

}  // namespace sparkfp4::cuda
