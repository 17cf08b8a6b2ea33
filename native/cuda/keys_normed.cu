// LayerNorm of keys of 128 at aligned addresses to bfloat16, then rotation or none, and codes by the rule of ceil: four
// threads a row, two rows a thread. A thread has of each 16 bytes the pair of its number, as matrices of 8 by 8 halves
// are loaded, so that all but the last two steps of a sum's tree are within it. Codes, and the rotation, take whole
// blocks: pairs go back to shared memory, and come from there as words of 16 bytes.
#include "normed_rows.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kNormedThreads = 128;
constexpr int kPackedRow = kFour * kKeyPackedBlock;
constexpr float kPerElement = 1.0f / kRowElements;

// What a turn needs and no turn changes. The compiler is not to find it anew each time for want of registers.
__device__ __forceinline__ uint32_t kept(uint32_t value) {
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

// What one row's threads add before they exchange: of(p) is the term of pair p.
template <typename Term>
__device__ __forceinline__ float own_lanes_sum(Term of) {
  float lanes[kMatrices];
#pragma unroll
  for (int p = 0; p < kPairs; p++) {
    lanes[p % kMatrices] = p < kMatrices ? of(p) : __fadd_rn(lanes[p % kMatrices], of(p));
  }

  return __fadd_rn(__fadd_rn(lanes[0], lanes[2]), __fadd_rn(lanes[1], lanes[3]));
}

// Sums over a row's threads of a term a group: that of group t / 2 to thread t.
__device__ __forceinline__ float own_group_sum(const float *terms) {
  bool upper = quad_lane() & 2;
  float sum = __fadd_rn(upper ? terms[1] : terms[0], from_partner(upper ? terms[0] : terms[1], 2));
  return __fadd_rn(sum, from_partner(sum, 1));
}

// What threads have of their groups, for both.
__device__ __forceinline__ void of_groups(float own, float *both) {
  bool upper = quad_lane() & 2;
  float other = from_partner(own, 2);
  both[0] = upper ? other : own;
  both[1] = upper ? own : other;
}

// norm: weights and biases of a pair after another's.
__device__ __forceinline__ void layer_norm(float (*x)[2 * kPairs], const float4 *norm, float eps) {
  float sums[kGroups];
  float means[kGroups];
  float factors[kGroups];
#pragma unroll
  for (int g = 0; g < kGroups; g++) {
    sums[g] = own_lanes_sum([&](int p) { return __fadd_rn(x[g][2 * p], x[g][2 * p + 1]); });
  }

  // A quotient by 128 is the product with its inverse, which is a power of two.
  of_groups(__fmul_rn(own_group_sum(sums), kPerElement), means);
#pragma unroll
  for (int g = 0; g < kGroups; g++) {
#pragma unroll
    for (int i = 0; i < 2 * kPairs; i++) {
      x[g][i] = __fsub_rn(x[g][i], means[g]);
    }

    sums[g] = own_lanes_sum([&](int p) { return pair_squares({x[g][2 * p], x[g][2 * p + 1]}); });
  }

  float variance = __fmul_rn(own_group_sum(sums), kPerElement);
  of_groups(__frcp_rn(__fsqrt_rn(__fadd_rn(variance, eps))), factors);
#pragma unroll
  for (int p = 0; p < kPairs; p++) {
    const float4 of_pair = norm[p * kQuad];
#pragma unroll
    for (int g = 0; g < kGroups; g++) {
      float *pair = x[g] + 2 * p;
      pair[0] = __fadd_rn(__fmul_rn(__fmul_rn(pair[0], factors[g]), of_pair.x), of_pair.z);
      pair[1] = __fadd_rn(__fmul_rn(__fmul_rn(pair[1], factors[g]), of_pair.y), of_pair.w);
    }
  }
}

// The thread has half s of a row, of which the partner has the other half.
__device__ __forceinline__ void rotate_half(float *x, int s, float factor) {
  constexpr int kHalf = kRowElements / 2;
#pragma unroll
  for (int distance = 1; distance < kHalf; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kHalf; i++) {
      if ((i & distance) == 0) {
        float first = x[i];
        x[i] = __fadd_rn(first, x[i + distance]);
        x[i + distance] = __fsub_rn(first, x[i + distance]);
      }
    }
  }

  // the partner's more or less the own, which is one rounding
  const float sign = s == 0 ? 1.0f : -1.0f;
#pragma unroll
  for (int i = 0; i < kHalf; i++) {
    x[i] = __fmul_rn(__fmaf_rn(x[i], sign, from_partner(x[i], 1)), factor);
  }
}

// A key's place, which the threads of its row get from the one whose number the row has.
struct KeyPlace {
  unsigned char *packed;
  unsigned char *scales;

  __device__ __forceinline__ KeyPlace of_row(int row) const {
    auto from = [&](unsigned char *own) {
      auto address = __shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(own), row);
      return reinterpret_cast<unsigned char *>(address);
    };
    return {from(packed), from(scales)};
  }
};

// A block's bytes.
struct Encoded {
  uint4 codes;
  uint32_t scale;
  bool is_finite;

  __device__ __forceinline__ explicit Encoded(const EightPairs *block) {
    uint32_t amax = block_amax(block);
    scale = scale_byte(SPARKFP4_CEIL, amax) & 0xff;
    codes = codes_of_block<true>(block, scale);
    is_finite = amax < kInfinityBits;
  }

  // Writes them as those of a row's block, where the row has a place; lowers *bad to the row if they are not finite.
  __device__ __forceinline__ void write(const KeyPlace &place, int block, int64_t *bad, int64_t row) const {
    if (place.packed != nullptr) {
      reinterpret_cast<uint4 *>(place.packed)[block] = codes;
      place.scales[block] = static_cast<unsigned char>(scale);
      if (!is_finite) {
        mark(bad, row);
      }
    }
  }
};

template <typename Type, bool kRotates>
__global__ void __launch_bounds__(kNormedThreads, 5) normed_kernel(const __grid_constant__ KeyRows rows) {
  constexpr int kStages = sizeof(typename Type::Bits) == 2 ? 2 : 1;
  constexpr int kWarps = kNormedThreads / kWarp;
  using Fetched = FetchedRows<Type>;
  __shared__ alignas(2 * kExchangedRow) unsigned char staged[kWarps][kStages][kTurnRows * Fetched::kRowBytes];
  __shared__ float4 norm[kRowElements / 2];
  for (int i = threadIdx.x; i < kRowElements / 2; i += kNormedThreads) {
    norm[i] = {rows.form.norm_weight[2 * i], rows.form.norm_weight[2 * i + 1], rows.form.norm_bias[2 * i],
               rows.form.norm_bias[2 * i + 1]};
  }

  __syncthreads();
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int64_t step = static_cast<int64_t>(gridDim.x) * (kWarps * kTurnRows);
  int64_t first = (static_cast<int64_t>(blockIdx.x) * kWarps + warp) * kTurnRows;
  // Thread i places row i, whose slot is on its way while rows are worked on.
  auto slot_of = [&](int64_t row) { return lane < kTurnRows && row < rows.rows ? rows.slots[row] : int64_t{-1}; };
  int64_t slot_ahead = slot_of(first + lane);
  const unsigned char *source = rows.source + first * Fetched::kRowBytes + Fetched::source_offset(lane);
  const int64_t source_step = step * Fetched::kRowBytes;
  // Of a turn's rows, of which the next ones are in the other place.
  uint32_t turn = shared_address(staged[warp][0]);
  uint32_t next = shared_address(staged[warp][kStages - 1]);
  const uint32_t of_target = kept(Fetched::target_offset(lane));
  const uint32_t of_own = kept(Fetched::own_offset(lane));
  const uint32_t of_words = kept(kRotates ? ExchangedRows::words_offset(lane / 2, lane % 2 * 8)
                                          : ExchangedRows::words_offset(lane / kQuad, lane % kQuad * kFour));
  if (kStages == 2 && first < rows.rows) {
    Fetched::fetch(source, turn + of_target, rows.rows - first);
  }

  end_fetch();
  for (; first < rows.rows; first += step) {
    if constexpr (kStages == 2) {
      // The next rows are on their way while these are worked on.
      source += source_step;
      if (first + step < rows.rows) {
        Fetched::fetch(source, next + of_target, rows.rows - first - step);
      }
    } else {
      Fetched::fetch(source, turn + of_target, rows.rows - first);
      source += source_step;
    }

    end_fetch();
    const int64_t slot = slot_ahead;
    slot_ahead = slot_of(first + step + lane);
    wait_for_fetch<kStages - 1>();
    float x[kGroups][2 * kPairs];
#pragma unroll
    for (int g = 0; g < kGroups; g++) {
      Fetched::values(turn + of_own, g, x[g]);
    }

    // The rows' place is free for what becomes of them.
    __syncwarp();
    layer_norm(x, norm + quad_lane(), rows.form.eps);
#pragma unroll
    for (int g = 0; g < kGroups; g++) {
      uint32_t pairs[kPairs];
#pragma unroll
      for (int p = 0; p < kPairs; p++) {
        pairs[p] = bf16_pair({x[g][2 * p], x[g][2 * p + 1]});
      }

      ExchangedRows::put(turn + (kStages == 2 ? of_own : ExchangedRows::own_offset(lane)), g, pairs);
    }

    Place place;
    KeyPlace own = {};
    if (place_of(rows.pages, slot, first + lane, rows.bad, &place)) {
      own.packed = place.page + place.token * kPackedRow;
      own.scales = place.page + rows.pages.tokens.value * kPackedRow + place.token * kFour;
    }

    __syncwarp();
    if constexpr (kRotates) {
      const int row = lane / 2;
      const int s = lane % 2;
      float half[kRowElements / 2];
#pragma unroll
      for (int i = 0; i < kPieces / 2; i++) {
        Eight<Bf16> eight = {{load_word(turn + of_words ^ i * kWordBytes)}};
        eight.values(half + i * kEight);
      }

      rotate_half(half, s, rows.rotation);
      const KeyPlace target = own.of_row(row);
#pragma unroll
      for (int b = 0; b < 2; b++) {
        EightPairs block[kFour];
#pragma unroll
        for (int i = 0; i < kFour; i++) {
          const float *of_word = half + b * kKeyBlock + i * kEight;
          block[i].set(make_uint4(bf16_pair({of_word[0], of_word[1]}), bf16_pair({of_word[2], of_word[3]}),
                                  bf16_pair({of_word[4], of_word[5]}), bf16_pair({of_word[6], of_word[7]})));
        }

        Encoded(block).write(target, 2 * s + b, &rows.bad->encoded, first + row);
      }
    } else {
      EightPairs blocks[kGroups][kFour];
#pragma unroll
      for (int g = 0; g < kGroups; g++) {
#pragma unroll
        for (int i = 0; i < kFour; i++) {
          blocks[g][i].set(load_word((turn + of_words ^ i * kWordBytes) + g * (kMatrixRows * kExchangedRow)));
        }
      }

      const Encoded encoded[kGroups] = {Encoded(blocks[0]), Encoded(blocks[1])};
#pragma unroll
      for (int g = 0; g < kGroups; g++) {
        const int row = g * kMatrixRows + lane / kQuad;
        encoded[g].write(own.of_row(row), quad_lane(), &rows.bad->encoded, first + row);
      }
    }

    // before they are overwritten
    __syncwarp();
    const uint32_t worked_on = turn;
    turn = next;
    next = worked_on;
  }
}

template <typename Type>
auto kernel_of(const sparkfp4_key_form &form) {
  return form.hadamard ? normed_kernel<Type, true> : normed_kernel<Type, false>;
}

}  // namespace

bool takes_normed_keys(const sparkfp4_key_form &form) {
  return form.norm_weight != nullptr && form.round_to_bf16 && form.rule == SPARKFP4_CEIL;
}

cudaError_t launch_normed_keys(const KeyRows &rows, cudaStream_t stream) {
  if (rows.rows == 0) {
    return cudaSuccess;
  }

  auto kernel = rows.dtype == SPARKFP4_BF16  ? kernel_of<Bf16>(rows.form)
                : rows.dtype == SPARKFP4_F16 ? kernel_of<F16>(rows.form)
                                             : kernel_of<F32>(rows.form);
  constexpr int kBlockRows = kNormedThreads / kWarp * kTurnRows;
  int grid;
  cudaError_t error = grid_size(kernel, (rows.rows + kBlockRows - 1) / kBlockRows, &grid, kNormedThreads);
  if (error == cudaSuccess) {
    kernel<<<grid, kNormedThreads, 0, stream>>>(rows);
    error = cudaGetLastError();
  }

  return error;
}

}  // namespace sparkfp4::cuda
