// The encode under a search: org.sparkfp4.formats.ScaleSearch.
#include "sweep.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kLeastSearched = (127u - 50) << 23;
constexpr uint32_t kMostSearched = (127u + 60) << 23;

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

// Bit 3 of each nibble: whether an element from first on is below zero; d is below 1, so that its quotient is, too.
__device__ __forceinline__ uint32_t signs_of(const Weights &weights, int first) {
  uint32_t signs = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    signs |= weights.w[first + i] < 0 ? 8u << 4 * i : 0;
  }

  return signs;
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

// The same of quotients by d's inverse, under an ordinary d of kMostByBits at most.
__device__ __forceinline__ Encoded encode_by_quotients(const Weights &weights, uint32_t byte, const Rule &rule) {
  Encoded encoded = {make_uint2(0, 0), byte, rule.factor(code_scale(byte))};
  encoded.codes.x = encode_eight(Quotients([&](int i) { return weights.w[i]; }, 0, encoded.d)) |
                    signs_of(weights, 0);
  encoded.codes.y = encode_eight(Quotients([&](int i) { return weights.w[i]; }, 8, encoded.d)) |
                    signs_of(weights, 8);
  return encoded;
}

// The same of products, where loss_of() takes them.
__device__ __forceinline__ Encoded encode_by_bits(const Weights &weights, uint32_t byte, const Rule &rule,
                                                  const float *halves) {
  float scale = code_scale(byte);
  Encoded encoded = {make_uint2(0, 0), byte, rule.factor(scale)};
  float inverse = halves[mantissa(scale)] * approximate_reciprocal(encoded.d) * (2 * kToE2m1);
  auto quotient = [&](int i) { return fminf(__fmul_rn(fabsf(weights.w[i]), inverse), 6 * kToE2m1); };
  encoded.codes.x = encode_eight_by_bits<true>(quotient, [&](int i) { return weights.w[i]; });
  encoded.codes.y = encode_eight_by_bits<true>([&](int i) { return quotient(8 + i); },
                                               [&](int i) { return weights.w[8 + i]; });
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
  constexpr bool kBf16 = std::is_same_v<Type, Bf16>;
  admit_next_launch();
  Rule rule;
  const ScaleRule *made = load_rule(batch, encode, &rule);
  if (made == nullptr) {
    return;
  }
  const float *halves = made->halves;

  bool aligned_out = is_aligned(encode.packed, 8);
  float global = rule.modelopt ? rule.global_scale : rule.inverse_scale;
  bool exact = !kBf16 || !rule.all_halves;
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

      bool small = rule.ordinary && global <= kMostGlobal && amax <= kMostLargest && amax >= kLeastByBits;
      uint32_t byte = 0;
      if (small && encode.search != SPARKFP4_FOUR_OVER_SIX) {
        byte = sweep_quickly(weights, weighing, amax, rule, halves);
      }

      Encoded encoded;
      if (small && !exact) {
        byte = byte != 0 ? byte : choose<!kBf16>(weights, weighing, amax, bf16, encode.search, rule, halves);
        encoded = encode_by_bits(weights, byte, rule, halves);
      } else {
        byte = byte != 0 ? byte : choose<true>(weights, weighing, amax, bf16, encode.search, rule, halves);
        encoded = small ? encode_by_quotients(weights, byte, rule) : encode_under(weights, byte, rule);
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

  conclude_last(batch, encode, largest);
}

}  // namespace

cudaError_t launch_search(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  bool bf16 = encode.source.kind == SPARKFP4_BF16;
  bool diagonal = encode.search == SPARKFP4_WEIGHTED;
  auto kernel = diagonal ? (bf16 ? search_kernel<Bf16, Diagonal> : search_kernel<void, Diagonal>)
                         : (bf16 ? search_kernel<Bf16, Plain> : search_kernel<void, Plain>);
  return launch_tiles(kernel, batch, encode, stream);
}

}  // namespace sparkfp4::cuda
