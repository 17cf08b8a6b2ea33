// The encode by round to nearest: a thread a block, a thread block a tile, tiles far apart in turn.
#pragma once

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
                                            float global_scale, uint32_t byte, Encoded *encoded) {
  float scale;
  if (byte == 0) {
    float amax = 0;
    for (int i = 0; i < kBlock; i++) {
      amax = fmaxf(amax, fabsf(widen<Type>(load_element<Type>(source, i, source_scale))));
    }

    scale = modelopt ? block_scale<SPARKFP4_MODELOPT, Type>(amax, 6.0f, global_scale)
                     : block_scale<SPARKFP4_COMPRESSED_TENSORS, Type>(amax, 6.0f, global_scale);
    byte = e4m3_byte(scale);
  } else {
    scale = e4m3_value(byte);
  }

  float d = modelopt ? dequant_factor<SPARKFP4_MODELOPT>(scale, global_scale)
                     : dequant_factor<SPARKFP4_COMPRESSED_TENSORS>(scale, global_scale);
  uint64_t codes = 0;
#pragma unroll 1
  for (int i = 0; i < kBlock; i++) {
    float x = widen<Type>(load_element<Type>(source, i, source_scale)) / d;
    codes |= static_cast<uint64_t>(e2m1_index(fabsf(x)) + (x < 0 ? 8 : 0)) << (4 * i);
  }

  *encoded = {make_uint2(static_cast<uint32_t>(codes), static_cast<uint32_t>(codes >> 32)), byte, d};
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

// The codes of a block under an ordinary scale and d = rule.factor(scale). False where the shortcut does not hold.
template <typename Type>
__device__ __forceinline__ bool encode_quickly(const Block<Type> &block, float source_scale, const ScaleRule &rule,
                                               float scale, float d, uint2 *codes) {
  if constexpr (Block<Type>::kNarrow) {
    float half_inverse = 0.5f * approximate_reciprocal(d);
    if constexpr (Type::kCodes) {
      // In units of the source's scale and of kUnit. d / scale says how near midpoints are.
      half_inverse = half_inverse * source_scale * (1 / Block<Type>::kUnit);
      float step = d * approximate_reciprocal(source_scale);
      if (!(half_inverse <= 0x1p127f) || has_near_midpoint<Block<Type>::kFreeBits>(step, 32)) {
        return false;
      }
    } else if (!rule.is_safe(scale)) {
      return false;
    }

    codes->x = encode_eight(Products<Type>{block, 0, half_inverse}) | (block.signs(0) & 0x88888888u);
    codes->y = encode_eight(Products<Type>{block, 8, half_inverse}) | (block.signs(1) & 0x88888888u);
  } else if constexpr (Type::kCodes) {
    // The codes of all magnitudes, eight or nine, in bytes.
    Quotients low([&](int i) { return Block<Type>::nth(i) * source_scale; }, 0, d);
    uint32_t nibbles = encode_eight(low);
    uint32_t table[3];
    table[0] = (nibbles & 0xf) | (nibbles & 0xf0) << 4 | (nibbles & 0xf00) << 8 | (nibbles & 0xf000) << 12;
    nibbles >>= 16;
    table[1] = (nibbles & 0xf) | (nibbles & 0xf0) << 4 | (nibbles & 0xf00) << 8 | (nibbles & 0xf000) << 12;
    if constexpr (Block<Type>::kMagnitudes == 8) {
      float twice = __fadd_rn(d, d);
      float half = divide(8.0f * source_scale, twice, __frcp_rn(twice));
      table[2] = e2m1_index(2 * half);
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

  return true;
}

// Encodes a block by round to nearest.
template <typename Type>
__device__ __forceinline__ Encoded encode_block(const Block<Type> &block, const unsigned char *source,
                                                float source_scale, float amax, const ScaleRule &rule) {
  Encoded encoded;
  bool ordinary = rule.ordinary && is_ordinary(amax);
  if constexpr (Type::kCodes) {
    ordinary &= source_scale >= kLeastSourceScale && source_scale <= kMostSourceScale;
  }

  bool quick = false;
  if (ordinary) {
    Scale scale = rule.template block<Type::kSource == Bf16::kSource>(amax);
    encoded.byte = scale.byte;
    encoded.d = rule.factor(scale.value);
    quick = encode_quickly<Type>(block, source_scale, rule, scale.value, encoded.d, &encoded.codes);
  }

  if (!quick) {
    Encoded plain;
    encode_plainly<Type>(source, source_scale, rule.modelopt, rule.global_scale, ordinary ? encoded.byte : 0, &plain);
    encoded = plain;
  }

  return encoded;
}

template <typename Type>
constexpr int kElementFreeBits = Type::kSource == Bf16::kSource ? 16 : Type::kSource == F16::kSource ? 13 : 0;

// The rule, made once for the thread block. False where an element is not finite: there is nothing to do.
template <typename Type>
__device__ __forceinline__ bool make_rule(const Encode &encode, ScaleRule *rule) {
  uint32_t largest = encode.of_unit ? encode.workspace->largest : 0;
  if (encode.of_unit && largest >= infinity_bits(encode.source)) {
    return false;
  }

  if (threadIdx.x < 32) {
    ScaleRule made;
    made.fill(encode, largest_value(encode.source, largest), kElementFreeBits<Type>, threadIdx.x);
    if (threadIdx.x == 0) {
      *rule = made;
    }
  }

  __syncthreads();
  return true;
}

template <typename Type, bool kSums>
__global__ void __launch_bounds__(kThreads) encode_kernel(const __grid_constant__ Batch batch,
                                                          const __grid_constant__ Encode encode) {
  __shared__ ScaleRule rule;
  if (!make_rule<Type>(encode, &rule)) {
    return;
  }

  bool aligned_out = is_aligned(encode.packed, 8);
  uint32_t largest = 0;
  ThreadSums sums;
  int segment_index = 0;
  int summed = -1;
  for (int64_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    int64_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    uint32_t index = static_cast<uint32_t>(tile - segment.first_tile) * kTileBlocks + threadIdx.x;
    if (index >= segment.elements / kBlock) {
      continue;
    }

    int64_t out = segment.first_block + index;
    const unsigned char *source = segment.data + static_cast<int64_t>(index) * Type::kBlockBytes;
    if (rule.zero) {
      store8(encode.packed + out * kPackedBlock, make_uint2(0, 0), aligned_out);
      encode.scales[out] = rule.modelopt ? 0x38 : 0x20;
      continue;
    }

    Block<Type> block;
    block.load(source, is_aligned(segment.data, Type::kBlockBytes < 16 ? 8 : 16));
    float scale = 1;
    if constexpr (Type::kCodes) {
      scale = source_scale(encode.source, segment.scales, index);
    }

    uint32_t bits = block.largest();
    float amax = Block<Type>::value(bits, scale);
    largest = max(largest, Type::kCodes ? __float_as_uint(amax) : bits);
    Encoded encoded = encode_block<Type>(block, source, scale, amax, rule);
    store8(encode.packed + out * kPackedBlock, encoded.codes, aligned_out);
    encode.scales[out] = static_cast<unsigned char>(encoded.byte);
    if constexpr (kSums) {
      Squares squares;
      if (encoded.d >= 0x1p-100f) {
        squares = block_squares([&](int i) { return block.weight(i, scale); }, encoded.codes, 0.5f * encoded.d);
      } else {
        squares_plainly<Type>(source, scale, encoded.codes, encoded.d, &squares);
      }

      sums.add(squares);
    }
  }

  if constexpr (kSums) {
    if (summed >= 0) {
      sums.flush(&encode.workspace->sums[summed]);
    }
  }

  if (!encode.of_unit) {
    raise(&encode.workspace->largest, largest);
  }
}

template <typename Type>
cudaError_t launch_encode_of(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  auto kernel = encode.with_sums ? encode_kernel<Type, true> : encode_kernel<Type, false>;
  int grid;
  cudaError_t error = grid_size(kernel, batch.tiles, &grid);
  if (error != cudaSuccess) {
    return error;
  }

  kernel<<<grid, kThreads, 0, stream>>>(batch, encode);
  return cudaGetLastError();
}

}  // namespace sparkfp4::cuda
