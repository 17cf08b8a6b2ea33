// The search that weighs errors by a Hessian: all 126 candidates, each 16 x 16 products.
//
// A thread block takes one block of columns of 256 rows, which share the Hessian.
#include "encode.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr uint32_t kLastCode = 126;
constexpr float kLeastSearched = 0x1p-50f;
constexpr float kMostSearched = 0x1p60f;

__device__ __forceinline__ float weight_at(const Source &source, const DeviceSegment &segment, uint32_t block, int i) {
  int64_t index = static_cast<int64_t>(block) * kBlock + i;
  switch (source.kind) {
    case SPARKFP4_BF16:
      return widen<Bf16>(load_bits<Bf16>(segment.data, index));
    case SPARKFP4_F16:
      return widen<F16>(load_bits<F16>(segment.data, index));
    case SPARKFP4_F32:
      return widen<F32>(load_bits<F32>(segment.data, index));
    case E4m3::kSource:
      return code_value<E4m3>(segment.data, index);
    case Int4::kSource:
      return code_value<Int4>(segment.data, index);
    default:
      return code_value<E2m1>(segment.data, index);
  }
}

// The sum by the fixed tree of terms 0 to 15.
template <typename Term>
__device__ __forceinline__ float tree(Term term) {
  float sums[8];
#pragma unroll
  for (int i = 0; i < 8; i++) {
    sums[i] = __fadd_rn(term(i), term(i + 8));
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

__device__ __forceinline__ float loss_of(const float (&w)[kBlock], const float (*hessian)[kBlock], float d,
                                         bool ordinary) {
  float errors[kBlock];
  float inverse = __frcp_rn(d);
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    float x = ordinary ? divide(fabsf(w[i]), d, inverse) : fabsf(w[i]) / d;
    // NaN where a quotient is too large for the shortcut.
    float magnitude = e2m1_magnitude(e2m1_index(x >= 0 ? x : 7.0f));
    errors[i] = __fsub_rn(w[i], __fmul_rn(copysignf(magnitude, w[i]), d));
  }

  float products[kBlock];
#pragma unroll
  for (int i = 0; i < kBlock; i++) {
    products[i] = __fmul_rn(errors[i], tree([&](int j) { return __fmul_rn(hessian[i][j], errors[j]); }));
  }

  return tree([&](int i) { return products[i]; });
}

__global__ void __launch_bounds__(kThreads) hessian_kernel(const __grid_constant__ Batch batch,
                                                           const __grid_constant__ Encode encode) {
  __shared__ float hessian[kBlock][kBlock];
  admit_next_launch();
  Rule rule;
  if (load_rule(batch, encode, &rule) == nullptr) {
    return;
  }

  const Source &source = encode.source;
  uint32_t row_blocks = source.row_blocks.divisor;
  bool bf16 = source.kind == SPARKFP4_BF16;
  uint32_t largest = 0;
  int segment_index = 0;
  for (uint32_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    uint32_t of_segment = tile - segment.first_tile;
    uint32_t group = divide(of_segment, source.row_blocks);
    uint32_t column = of_segment - group * row_blocks;
    int64_t row = static_cast<int64_t>(group) * kThreads + threadIdx.x;
    float own = encode.importance[static_cast<int64_t>(column) * kBlock * kBlock + threadIdx.x];
    bool weighs = __syncthreads_or(own != 0);
    // Of zeros alone it weighs nothing: the identity gives the plain loss.
    int i = threadIdx.x / kBlock;
    int j = threadIdx.x % kBlock;
    hessian[i][j] = weighs ? own : i == j ? 1.0f : 0.0f;
    __syncthreads();
    if (row * row_blocks >= segment.blocks) {
      continue;
    }

    uint32_t index = static_cast<uint32_t>(row) * row_blocks + column;
    int64_t out = segment.first_block + index;
    if (rule.zero) {
      store8(encode.packed + out * kPackedBlock, make_uint2(0, 0), false);
      encode.scales[out] = zero_scale(encode.recipe);
      continue;
    }

    float scale = source.kind < kCodeSources ? 1.0f : source_scale(source, segment.scales, index);
    float w[kBlock];
    uint32_t most = 0;
#pragma unroll
    for (int k = 0; k < kBlock; k++) {
      w[k] = weight_at(source, segment, index, k) * scale;
      most = max(most, __float_as_uint(w[k]) & F32::kMagnitude);
    }

    if (most >= F32::kInfinity) {
      largest = 0xffffffffu;
      continue;
    }

    float amax = __uint_as_float(most);
    uint32_t best = rule.block_plainly(amax, 6.0f, bf16);
    if (amax >= kLeastSearched && amax <= kMostSearched) {
      float least = __uint_as_float(F32::kInfinity);
#pragma unroll 1
      for (uint32_t code = 1; code <= kLastCode; code++) {
        float d = rule.factor_plainly(e4m3_value(code));
        float loss = loss_of(w, hessian, d, rule.ordinary);
        if (loss < least) {
          least = loss;
          best = code;
        }
      }
    }

    float d = rule.factor_plainly(e4m3_value(best));
    uint2 codes = make_uint2(0, 0);
#pragma unroll
    for (int k = 0; k < kBlock; k++) {
      float x = w[k] / d;
      uint32_t code = e2m1_index(fabsf(x)) + (x < 0 ? 8 : 0);
      (k < 8 ? codes.x : codes.y) |= code << (k % 8 * 4);
    }

    store8(encode.packed + out * kPackedBlock, codes, is_aligned(encode.packed, 8));
    encode.scales[out] = static_cast<unsigned char>(best);
  }

  conclude_last(batch, encode, largest);
}

}  // namespace

cudaError_t launch_hessian(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  return launch_tiles(hessian_kernel, batch, encode, stream);
}

}  // namespace sparkfp4::cuda
