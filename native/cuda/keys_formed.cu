// MXFP4 of keys of 128 at aligned addresses that are normalised, rounded or rotated first: a thread a row. All sums,
// and the rotation, then are within a thread; a warp's rows come and go through shared memory, as words of 16 bytes.
#include "fetch.cuh"
#include "words.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kRowThreads = 2 * kWarp;
constexpr int kRowElements = kFour * kKeyBlock;
constexpr int kLanes = kTeam;
constexpr int kPackedRow = kFour * kKeyPackedBlock;

// The rows of a warp in shared memory. Their distance is an odd number of words, so that threads that read their rows
// at once do not wait for each other.
template <typename Type>
struct StagedRows {
  static constexpr int kRowBytes = kRowElements * sizeof(typename Type::Bits);
  static constexpr int kRowWords = kRowBytes / kWordBytes;
  uint4 words[kWarp][kRowWords + 1];

  static constexpr int kAtOnce = kWarp / kRowWords;  // rows that a warp copies at once

  // Where the thread's first word is, in memory.
  static __device__ __forceinline__ int64_t source_offset(int lane) {
    return lane / kRowWords * kRowBytes + lane % kRowWords * kWordBytes;
  }

  // Starts to copy a warp's rows, of which so many are present.
  __device__ __forceinline__ void fetch(const unsigned char *source, int64_t present) {
    const int within = threadIdx.x % kWarp / kRowWords;
    const uint32_t target = shared_address(&words[within][threadIdx.x % kRowWords]);
    auto copy = [&](int i) {
      fetch_word(target + i * (kRowBytes + kWordBytes), source + i * kRowBytes);
    };
    if (present >= kWarp) {
#pragma unroll
      for (int i = 0; i < kWarp; i += kAtOnce) {
        copy(i);
      }

      return;
    }

#pragma unroll 1
    for (int i = 0; i + within < present; i += kAtOnce) {
      copy(i);
    }
  }
};

// l with l + 8, then l + 4, l + 2, l + 1.
__device__ __forceinline__ float lane_sum(float *lanes) {
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma unroll
    for (int l = 0; l < kLanes / 2; l++) {
      if (l < half) {
        lanes[l] = __fadd_rn(lanes[l], lanes[l + half]);
      }
    }
  }

  return lanes[0];
}

// Weights and biases are in shared memory.
__device__ __forceinline__ void layer_norm(float *x, const float4 *weight, const float4 *bias, float eps) {
  // A quotient by 128 is the product with its inverse, which is a power of two.
  constexpr float kPerElement = 1.0f / kRowElements;
  float lanes[kLanes];
#pragma unroll
  for (int i = 0; i < kRowElements; i += 2) {
    float pair = __fadd_rn(x[i], x[i + 1]);
    lanes[i / 2 % kLanes] = i < kKeyBlock ? pair : __fadd_rn(lanes[i / 2 % kLanes], pair);
  }

  float mean = __fmul_rn(lane_sum(lanes), kPerElement);
#pragma unroll
  for (int i = 0; i < kRowElements; i += 2) {
    x[i] = __fsub_rn(x[i], mean);
    x[i + 1] = __fsub_rn(x[i + 1], mean);
    float pair = pair_squares({x[i], x[i + 1]});
    lanes[i / 2 % kLanes] = i < kKeyBlock ? pair : __fadd_rn(lanes[i / 2 % kLanes], pair);
  }

  float r = __frcp_rn(__fsqrt_rn(__fadd_rn(__fmul_rn(lane_sum(lanes), kPerElement), eps)));
#pragma unroll
  for (int i = 0; i < kRowElements; i += 4) {
    const float4 w = weight[i / 4];
    const float4 b = bias[i / 4];
    x[i] = __fadd_rn(__fmul_rn(__fmul_rn(x[i], r), w.x), b.x);
    x[i + 1] = __fadd_rn(__fmul_rn(__fmul_rn(x[i + 1], r), w.y), b.y);
    x[i + 2] = __fadd_rn(__fmul_rn(__fmul_rn(x[i + 2], r), w.z), b.z);
    x[i + 3] = __fadd_rn(__fmul_rn(__fmul_rn(x[i + 3], r), w.w), b.w);
  }
}

__device__ __forceinline__ void round_row(float *x) {
#pragma unroll
  for (int i = 0; i < kRowElements; i += 2) {
    uint32_t pair = bf16_pair({x[i], x[i + 1]});
    x[i] = low_half<Bf16>(pair);
    x[i + 1] = high_half<Bf16>(pair);
  }
}

__device__ __forceinline__ void rotate(float *x, float factor) {
#pragma unroll
  for (int distance = 1; distance < kRowElements; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kRowElements; i++) {
      if ((i & distance) == 0) {
        float first = x[i];
        x[i] = __fadd_rn(first, x[i + distance]);
        x[i + distance] = __fsub_rn(first, x[i + distance]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kRowElements; i++) {
    x[i] = __fmul_rn(x[i], factor);
  }
}

// Whether the scale above u has the smaller error for a block.
__device__ __forceinline__ bool next_is_better(const float *x, uint32_t u) {
  float errors[kLanes];
  float errors_of_next[kLanes];
  float inverse = inverse_scale(u);
#pragma unroll
  for (int i = 0; i < kKeyBlock; i += kEight) {
    square_errors(x + i, inverse, errors + i / 2, errors_of_next + i / 2);
  }

  return lane_sum(errors_of_next) < lane_sum(errors);
}

// A row's bytes: those of the codes of its blocks to packed, its scales. False where it is not finite.
template <bool kCeil>
__device__ __forceinline__ bool encode_row(const float *x, sparkfp4_scale_rule rule, uint4 *packed, uint32_t *scales) {
  uint32_t bytes = 0;
  bool finite = true;
#pragma unroll
  for (int b = 0; b < kFour; b++) {
    const float *block = x + b * kKeyBlock;
    EightPairs pairs[kFour];
#pragma unroll
    for (int i = 0; i < kFour; i++) {
      pairs[i].set(block + i * kEight);
    }

    uint32_t amax = block_amax(pairs);
    finite = finite && amax < kInfinityBits;
    uint32_t u = scale_byte(kCeil ? SPARKFP4_CEIL : rule, amax) & 0xff;
    if (!kCeil && rule == SPARKFP4_BEST_OF_TWO) {
      u += next_is_better(block, u);
    }

    packed[b] = codes_of_block<kCeil>(pairs, u);
    bytes |= u << 8 * b;
  }

  *scales = bytes;
  return finite;
}

// kNormOnly: LayerNorm, by the rule of ceil, and nothing else; else whatever the form says.
template <typename Type, bool kNormOnly>
__global__ void __launch_bounds__(kRowThreads, kNormOnly ? 6 : 4)
    formed_kernel(const __grid_constant__ KeyRows rows) {
  constexpr int kStages = sizeof(typename Type::Bits) == 2 ? 2 : 1;
  constexpr int kWarps = kRowThreads / kWarp;
  __shared__ StagedRows<Type> staged[kWarps][kStages];
  __shared__ float4 norm[2][kRowElements / 4];
  const bool has_norm = kNormOnly || rows.form.norm_weight != nullptr;
  if (has_norm) {
    for (int i = threadIdx.x; i < kRowElements; i += kRowThreads) {
      reinterpret_cast<float *>(norm[0])[i] = rows.form.norm_weight[i];
      reinterpret_cast<float *>(norm[1])[i] = rows.form.norm_bias[i];
    }

    __syncthreads();
  }

  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kRowThreads;
  int64_t first = static_cast<int64_t>(blockIdx.x) * kRowThreads + warp * kWarp;
  // A thread's slot is on its way while rows are worked on.
  auto slot_of = [&](int64_t row) { return row < rows.rows ? rows.slots[row] : int64_t{-1}; };
  int64_t slot_ahead = slot_of(first + lane);
  using Staged = StagedRows<Type>;
  const unsigned char *source = rows.source + first * Staged::kRowBytes + Staged::source_offset(lane);
  int stage = 0;
  if (kStages == 2 && first < rows.rows) {
    staged[warp][0].fetch(source, rows.rows - first);
  }

  end_fetch();
  for (; first < rows.rows; first += step) {
    if constexpr (kStages == 2) {
      // The next rows are on their way while these are worked on.
      source += step * Staged::kRowBytes;
      if (first + step < rows.rows) {
        staged[warp][stage ^ 1].fetch(source, rows.rows - first - step);
      }
    } else {
      staged[warp][0].fetch(source, rows.rows - first);
      source += step * Staged::kRowBytes;
    }

    end_fetch();
    const int64_t slot = slot_ahead;
    slot_ahead = slot_of(first + step + lane);
    wait_for_fetch<kStages - 1>();
    Staged &of_warp = staged[warp][stage];
    uint4 *own = of_warp.words[lane];
    float x[kRowElements];
#pragma unroll
    for (int i = 0; i < kRowElements / kEight; i++) {
      Eight<Type> eight;
      eight.load(reinterpret_cast<const unsigned char *>(own + i * Eight<Type>::kWords));
      eight.values(x + i * kEight);
    }

    const int64_t row = first + lane;
    if (has_norm) {
      layer_norm(x, norm[0], norm[1], rows.form.eps);
    }

    if constexpr (!kNormOnly) {
      if (rows.form.round_to_bf16) {
        round_row(x);
      }

      if (rows.form.hadamard) {
        rotate(x, rows.rotation);
        if (rows.form.round_to_bf16) {
          round_row(x);
        }
      }
    }

    // A row's codes take the place of its elements, until all of the warp write them.
    uint32_t scales;
    bool finite = encode_row<kNormOnly>(x, rows.form.rule, own, &scales);
    Place place = {};
    unsigned char *packed = nullptr;
    if (place_of(rows.pages, slot, row, rows.bad, &place)) {
      packed = place.page + place.token * kPackedRow;
      *reinterpret_cast<uint32_t *>(place.page + rows.pages.tokens.value * kPackedRow + place.token * kFour) = scales;
      if (!finite) {
        mark(&rows.bad->encoded, row);
      }
    }

    __syncwarp();
#pragma unroll
    for (int i = 0; i < kWarp; i += kWarp / kFour) {
      int of_row = i + lane / kFour;
      auto target = __shfl_sync(0xffffffffu, reinterpret_cast<unsigned long long>(packed), of_row);
      if (target != 0) {
        reinterpret_cast<uint4 *>(target)[lane % kFour] = of_warp.words[of_row][lane % kFour];
      }
    }

    // before they are overwritten
    __syncwarp();
    stage ^= kStages - 1;
  }
}

template <typename Type>
auto kernel_of(const sparkfp4_key_form &form) {
  bool norm_only =
      form.norm_weight != nullptr && !form.round_to_bf16 && !form.hadamard && form.rule == SPARKFP4_CEIL;
  return norm_only ? formed_kernel<Type, true> : formed_kernel<Type, false>;
}

}  // namespace

cudaError_t launch_formed_keys(const KeyRows &rows, cudaStream_t stream) {
  if (rows.rows == 0) {
    return cudaSuccess;
  }

  auto kernel = rows.dtype == SPARKFP4_BF16  ? kernel_of<Bf16>(rows.form)
                : rows.dtype == SPARKFP4_F16 ? kernel_of<F16>(rows.form)
                                             : kernel_of<F32>(rows.form);
  int grid;
  cudaError_t error = grid_size(kernel, (rows.rows + kRowThreads - 1) / kRowThreads, &grid, kRowThreads);
  if (error == cudaSuccess) {
    kernel<<<grid, kRowThreads, 0, stream>>>(rows);
    error = cudaGetLastError();
  }

  return error;
}

}  // namespace sparkfp4::cuda
