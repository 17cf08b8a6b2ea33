// The encode under a search: org.sparkfp4.formats.ScaleSearch.
//
// The sweep looks at few of the 126 candidates, and yet finds the argmin of all. Let c be a code under which the
// block's largest |w| has a quotient below 7. A grid of twice the step, d' = 2 d, has no point below 7 d that the grid
// of d lacks, and ties go to the same points; so each element errs no less under d' than under d, after rounding too,
// and neither does the sum. Codes from 8 on double their scale with 8 more, those below 16 stand for themselves times
// 2^-9: what follows 8 codes (or follows 15) behind the first such c has a code of no greater loss before it, and is
// never the lowest of the best. Before c the largest |w| alone errs by |w| - 6 d, more and more: once its term exceeds
// the least loss, no code before can win. Both hold as they are for errors weighed one by one; those weighed by a
// Hessian take all 126.
#include "encode.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kLastCode = 126;
constexpr uint32_t kLeastSearched = (127u - 50) << 23;
constexpr uint32_t kMostSearched = (127u + 60) << 23;

// Up to these no candidate's d is above kMostByBits: it is less than 0.4 * amax, 15 * 2^-9 of the global scale (of
// compressed-tensors its inverse) where that is more, or its eighth where a block's scale is zero.
constexpr float kMostLargest = 1;
constexpr float kMostGlobal = 4;

// Others are not searched and their quotients may be anything.
constexpr float kLeastByBits = 0x1p-50f;

// What all kinds of sources come to.
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
    weights->w[i] = block.weight(i, scale);
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

// The code of the least loss among all, the lowest of equals; 0 where none is finite.
template <bool kExact, typename Weighing>
__device__ __forceinline__ uint32_t sweep(const Weights &weights, const Weighing &weighing, float amax,
                                          const Rule &rule, const float *halves) {
  // The first code of which amax is below 7 d, or the one behind it.
  float ratio = divide(amax, rule.modelopt ? rule.global_scale : rule.inverse_scale,
                       rule.modelopt ? rule.inverse_scale : rule.global_scale) * (1 / 6.99f);
  ratio = fminf(ratio, 448.0f);
  uint32_t bits = __float_as_uint(ratio);
  uint32_t first = ratio < 0x1p-6f ? static_cast<uint32_t>(ceilf(ratio * 0x1p9f))
                                   : ((bits + 0xfffff) >> 20) - (120u << 3);
  first = max(first, 1u);
  while (first <= kLastCode && amax > 6.99f * rule.factor(code_scale(first))) {
    first++;
  }

  uint32_t last = min(first < 8 ? 15u : first + 7, kLastCode);
  uint32_t best = 0;
  float least = __uint_as_float(F32::kInfinity);
#pragma unroll 1
  for (uint32_t code = first; code <= last; code++) {
    float loss = loss_of<kExact, false>(weights, weighing, code_scale(code), rule, halves);
    if (loss < least) {
      least = loss;
      best = code;
    }
  }

#pragma unroll 1
  for (uint32_t code = first - 1; code >= 1; code--) {
    float most = __fmul_rn(6.0f, rule.factor(code_scale(code)));
    float bound;
    if constexpr (std::is_same_v<Weighing, Plain>) {
      float error = fmaxf(__fsub_rn(amax, most), 0.0f);
      bound = __fmul_rn(error, error);
    } else {
      bound = 0;
#pragma unroll
      for (int i = 0; i < kBlock; i++) {
        float error = fmaxf(__fsub_rn(fabsf(weights.w[i]), most), 0.0f);
        bound = fmaxf(bound, weighing.weigh(i, __fmul_rn(error, error)));
      }
    }

    if (bound > least) {
      break;
    }

    float loss = loss_of<kExact, true>(weights, weighing, code_scale(code), rule, halves);
    if (loss <= least && loss < __uint_as_float(F32::kInfinity)) {
      least = loss;
      best = code;
    }
  }

  return best;
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

template <bool kExact, typename Weighing>
__device__ __forceinline__ uint32_t choose(const Weights &weights, const Weighing &weighing, float amax, bool bf16,
                                           sparkfp4_search search, const Rule &rule,
                                           const float *halves) {
  uint32_t bits = __float_as_uint(amax);
  bool searched = bits >= kLeastSearched && bits <= kMostSearched;
  if (searched && rule.ordinary && search != SPARKFP4_FOUR_OVER_SIX) {
    uint32_t swept = sweep<kExact>(weights, weighing, amax, rule, halves);
    return swept != 0 ? swept : rule.block_plainly(amax, 6.0f, bf16);
  }

  uint32_t best = rule.block_plainly(amax, 6.0f, bf16);
  if (!searched) {
    return best;
  }

  if (search == SPARKFP4_FOUR_OVER_SIX) {
    uint32_t to_four = rule.block_plainly(amax, 4.0f, bf16);
    float losses[2];
#pragma unroll 1
    for (int i = 0; i < 2; i++) {
      uint32_t code = i == 0 ? best : to_four;
      losses[i] = rule.ordinary ? loss_of<kExact, true>(weights, weighing, code_scale(code), rule, halves)
                                : rare_loss(weights, weighing, rule, code);
    }

    return losses[1] < losses[0] ? to_four : best;
  }

  float least = __uint_as_float(F32::kInfinity);
  for (uint32_t code = 1; code <= kLastCode; code++) {
    float loss = rare_loss(weights, weighing, rule, code);
    if (loss < least) {
      least = loss;
      best = code;
    }
  }

  return best;
}

// The codes of a block under the scale that was chosen.
__device__ __forceinline__ Encoded encode_under(const Weights &weights, uint32_t byte, const Rule &rule) {
  Encoded encoded = {make_uint2(0, 0), byte, 0};
  encoded.d = rule.factor_plainly(e4m3_value(byte));
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    float x = weights.w[i] / encoded.d;
    uint32_t code = e2m1_index(fabsf(x)) + (x < 0 ? 8 : 0);
    (i < 8 ? encoded.codes.x : encoded.codes.y) |= code << (i % 8 * 4);
  }

  return encoded;
}

// The same of products, where loss_of() takes them.
__device__ __forceinline__ Encoded encode_by_bits(const Weights &weights, uint32_t byte, const Rule &rule,
                                                  const float *halves) {
  float scale = code_scale(byte);
  Encoded encoded = {make_uint2(0, 0), byte, rule.factor(scale)};
  float inverse = halves[mantissa(scale)] * approximate_reciprocal(encoded.d) * (2 * kToE2m1);
  auto quotient = [&](int i) { return fminf(__fmul_rn(fabsf(weights.w[i]), inverse), 6 * kToE2m1); };
  encoded.codes.x = encode_eight_by_bits<true>(quotient);
  encoded.codes.y = encode_eight_by_bits<true>([&](int i) { return quotient(8 + i); });
#pragma unroll
  for (int i = 0; i < 8; i++) {
    encoded.codes.x |= weights.w[i] < 0 ? 8u << 4 * i : 0;
    encoded.codes.y |= weights.w[8 + i] < 0 ? 8u << 4 * i : 0;
  }

  return encoded;
}

// Weighing by E[x^2], which all zeros leave plain.
__device__ __forceinline__ Diagonal load_diagonal(const Encode &encode, uint32_t column) {
  Diagonal diagonal;
  bool weighs = false;
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    diagonal.h[i] = encode.importance[static_cast<int64_t>(column) * kBlock + i];
    weighs |= diagonal.h[i] != 0;
  }

#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    diagonal.h[i] = weighs ? diagonal.h[i] : 1.0f;
  }

  return diagonal;
}

// Type: Bf16, whose quotients can be products, or void for all sources.
template <typename Type, typename Weighing>
__global__ void __launch_bounds__(kThreads, 3) search_kernel(const __grid_constant__ Batch batch,
                                                          const __grid_constant__ Encode encode) {
  __shared__ float halves[8];
  constexpr bool kBf16 = std::is_same_v<Type, Bf16>;
  admit_next_launch();
  Rule rule;
  if (!load_rule(encode, &rule, halves)) {
    return;
  }

  bool aligned_out = is_aligned(encode.packed, 8);
  float global = rule.modelopt ? rule.global_scale : rule.inverse_scale;
  bool exact = !kBf16 || !rule.ordinary || !rule.all_halves || global > kMostGlobal;
  uint32_t largest = 0;
  ThreadSums sums;
  int segment_index = 0;
  int summed = -1;
  for (uint32_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    uint32_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    if (encode.with_sums && summed != segment.number) {
      if (summed >= 0) {
        sums.flush(&encode.workspace->sums[summed]);
      }

      summed = segment.number;
    }

    uint32_t first = (tile - segment.first_tile) * kTileBlocks + threadIdx.x;
#pragma unroll 1
    for (uint32_t index = first; index < first + kTileBlocks; index += kThreads) {
      if (index >= segment.blocks) {
        break;
      }

      int64_t out = segment.first_block + index;
      if (rule.zero) {
        store8(encode.packed + out * kPackedBlock, make_uint2(0, 0), aligned_out);
        encode.scales[out] = zero_scale(encode.recipe);
        continue;
      }

      Weights weights;
      uint32_t bits;
      if constexpr (kBf16) {
        bits = load_weights<Bf16>(segment.data, encode.source, nullptr, index, &weights);
      } else {
        bits = load_weights(encode.source, segment, index, &weights);
      }

      largest = max(largest, bits);
      if (bits >= infinity_bits(encode.source)) {
        continue;
      }

      float amax = largest_value(encode.source, bits);
      bool bf16 = encode.source.kind == SPARKFP4_BF16;
      Weighing weighing;
      if constexpr (std::is_same_v<Weighing, Diagonal>) {
        weighing = load_diagonal(encode, index - divide(index, encode.source.row_blocks) *
                                                     encode.source.row_blocks.divisor);
      }

      Encoded encoded;
      if (exact || amax > kMostLargest || amax < kLeastByBits) {
        encoded = encode_under(weights, choose<true>(weights, weighing, amax, bf16, encode.search, rule, halves), rule);
      } else {
        uint32_t byte = choose<!kBf16>(weights, weighing, amax, bf16, encode.search, rule, halves);
        encoded = encode_by_bits(weights, byte, rule, halves);
      }

      store8(encode.packed + out * kPackedBlock, encoded.codes, aligned_out);
      encode.scales[out] = static_cast<unsigned char>(encoded.byte);
      if (encode.with_sums) {
        Squares squares;
        if (encoded.d >= 0x1p-100f) {
          squares = block_squares([&](int i) { return weights.w[i]; }, encoded.codes, 0.5f * encoded.d);
        } else {
          Weights copy = weights;
          squares_plainly<F32>(reinterpret_cast<const unsigned char *>(copy.w), 1, encoded.codes, encoded.d, &squares);
        }

        sums.add(squares);
      }
    }
  }

  if (encode.with_sums && summed >= 0) {
    sums.flush(&encode.workspace->sums[summed]);
  }

  if (!encode.of_unit) {
    raise(&encode.workspace->largest, largest);
  }
}

}  // namespace

cudaError_t launch_search(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  bool bf16 = encode.source.kind == SPARKFP4_BF16;
  bool diagonal = encode.search == SPARKFP4_WEIGHTED;
  auto kernel = diagonal ? (bf16 ? search_kernel<Bf16, Diagonal> : search_kernel<void, Diagonal>)
                         : (bf16 ? search_kernel<Bf16, Plain> : search_kernel<void, Plain>);
  int grid;
  cudaError_t error = grid_size(kernel, batch.tiles, &grid);
  return error == cudaSuccess ? launch_after(kernel, grid, kThreads, stream, batch, encode) : error;
}

}  // namespace sparkfp4::cuda
