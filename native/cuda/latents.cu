// RMSNorm, and the entries of fp8_ds_mla, of any length and at any address; what norms_aligned.cu takes goes there.
#include "e4m3.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kLatentBlocks = kLatent / kKeyBlock;
constexpr int kTileBlocksOfLatent = kTile / kKeyBlock;

// 1 / sqrt(sum(x * x) / cols + eps)
__device__ __forceinline__ float rms_factor(float lane_sum, int64_t cols, float eps) {
  return inverse_root(__fadd_rn(__fdiv_rn(team_sum(lane_sum), static_cast<float>(cols)), eps));
}

__device__ __forceinline__ Pair scaled(const Pair &x, float r, const float *weight) {
  return {__fmul_rn(__fmul_rn(x.even, r), weight[0]), __fmul_rn(__fmul_rn(x.odd, r), weight[1])};
}

// Rows of any length, read twice.
template <typename Type>
__global__ void __launch_bounds__(kThreads) norm_kernel(const __grid_constant__ NormRows rows) {
  constexpr int kPairBytes = PairBits<Type>::kBytes;
  constexpr int kBlockBytes = kTeam * kPairBytes;
  const bool aligned = is_aligned(rows.source, kPairBytes);
  const bool out_aligned = is_aligned(rows.out, kPairBytes);
  const int lane = team_lane();
  const int64_t blocks = rows.cols / kKeyBlock;
  for (int64_t own = first_rows() + team(); own - team() < rows.rows; own += row_step()) {
    int64_t row = min(own, rows.rows - 1);
    int64_t offset = row * blocks * kBlockBytes + lane * kPairBytes;
    const unsigned char *source = rows.source + offset;
    float sum = 0;
#pragma unroll 8
    for (int64_t b = 0; b < blocks; b++) {
      float squares = pair_squares(load_pair<Type>(source + b * kBlockBytes, aligned));
      sum = b == 0 ? squares : __fadd_rn(sum, squares);
    }

    float r = rms_factor(sum, rows.cols, rows.eps);
    uint32_t largest = 0;
#pragma unroll 8
    for (int64_t b = 0; b < blocks; b++) {
      Pair y = scaled(load_pair<Type>(source + b * kBlockBytes, aligned), r, rows.weight + b * kKeyBlock + 2 * lane);
      largest = max(largest, larger_magnitude(y));
      if (own < rows.rows) {
        store_pair<Type>(rows.out + offset + b * kBlockBytes, y, out_aligned);
      }
    }

    if (own < rows.rows && largest >= kStoredInfinity<Type>) {
      mark(&rows.bad->normalised, row);
    }
  }
}

// The normalised latent, and its entry where the token has a slot.
template <typename Type>
__global__ void __launch_bounds__(kThreads) latent_kernel(const __grid_constant__ LatentRows rows) {
  constexpr int kPairBytes = PairBits<Type>::kBytes;
  constexpr int kBlockBytes = kTeam * kPairBytes;
  const NormRows &norm = rows.norm;
  const bool aligned = is_aligned(norm.source, kPairBytes);
  const bool out_aligned = is_aligned(norm.out, kPairBytes);
  const bool rope_aligned = is_aligned(rows.rope, kPairBytes);
  const bool pages_aligned = is_aligned(rows.pages.data, 4) && rows.pages.stride % 4 == 0;
  const int lane = team_lane();
  for (int64_t own = first_rows() + team(); own - team() < norm.rows; own += row_step()) {
    int64_t row = min(own, norm.rows - 1);
    bool active = own < norm.rows;
    int64_t offset = row * kLatentBlocks * kBlockBytes + lane * kPairBytes;
    Pair x[kLatentBlocks];
    float sum = 0;
#pragma unroll
    for (int b = 0; b < kLatentBlocks; b++) {
      x[b] = load_pair<Type>(norm.source + offset + b * kBlockBytes, aligned);
    }

#pragma unroll
    for (int b = 0; b < kLatentBlocks; b++) {
      sum = b == 0 ? pair_squares(x[b]) : __fadd_rn(sum, pair_squares(x[b]));
    }

    float r = rms_factor(sum, kLatent, norm.eps);
    uint32_t largest = 0;
#pragma unroll
    for (int b = 0; b < kLatentBlocks; b++) {
      x[b] = scaled(x[b], r, norm.weight + b * kKeyBlock + 2 * lane);
      largest = max(largest, larger_magnitude(x[b]));
      if (active) {
        store_pair<Type>(norm.out + offset + b * kBlockBytes, x[b], out_aligned);
      }
    }

    if (active && largest >= kStoredInfinity<Type>) {
      mark(&norm.bad->normalised, row);
    }

    Place place = {};
    bool inserted = active && row < rows.slot_count && place_of(rows.pages, rows.slots[row], row, lane == 0 ? norm.bad : nullptr, &place);
    unsigned char *entry = place.page + place.token * kEntryBytes;
    bool finite = true;
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++) {
      Pair *y = x + tile * kTileBlocksOfLatent;
      uint32_t amax = 0;
#pragma unroll
      for (int b = 0; b < kTileBlocksOfLatent; b++) {
        y[b] = rows.round_to_bf16 ? round_bf16(y[b]) : y[b];
        amax = max(amax, larger_magnitude(y[b]));
      }

      amax = team_max(amax);
      finite = finite && amax < kInfinityBits;
      float scale = fmaxf(__fdiv_rn(__uint_as_float(amax), 448.0f), 0x1p-126f);
      if (inserted) {
        if (lane == 0) {
          store_word(entry + kLatent + tile * 4, __float_as_uint(scale), pages_aligned);
        }

#pragma unroll
        for (int b = 0; b < kTileBlocksOfLatent; b++) {
          uint32_t codes = e4m3_pair({__fdiv_rn(y[b].even, scale), __fdiv_rn(y[b].odd, scale)});
          unsigned char *out = entry + tile * kTile + b * kKeyBlock + 2 * lane;
          if (pages_aligned) {
            *reinterpret_cast<uint16_t *>(out) = static_cast<uint16_t>(codes);
          } else {
            out[0] = static_cast<unsigned char>(codes);
            out[1] = static_cast<unsigned char>(codes >> 8);
          }
        }
      }
    }

    if (!inserted) {
      continue;
    }

#pragma unroll
    for (int b = 0; b < kRope / kKeyBlock; b++) {
      Pair rope = load_pair<Type>(rows.rope + (row * (kRope / kKeyBlock) + b) * kBlockBytes + lane * kPairBytes,
                                  rope_aligned);
      finite = finite && larger_magnitude(rope) < kRoundsToInfinity;
      store_word(entry + kLatent + kTiles * 4 + b * 2 * kKeyBlock + 4 * lane, bf16_pair(rope), pages_aligned);
    }

    if (!finite) {
      mark(&norm.bad->encoded, row);
    }
  }
}

}  // namespace

cudaError_t launch_norm(const NormRows &rows, cudaStream_t stream) {
  if (aligned_norm(rows)) {
    return launch_aligned_norm(rows, stream);
  }

  auto kernel = rows.dtype == SPARKFP4_BF16  ? norm_kernel<Bf16>
                : rows.dtype == SPARKFP4_F16 ? norm_kernel<F16>
                                             : norm_kernel<F32>;
  return launch_rows<NormRows>(kernel, rows, rows.rows, stream);
}

cudaError_t launch_latents(const LatentRows &rows, cudaStream_t stream) {
  if (aligned_latents(rows)) {
    return launch_aligned_latents(rows, stream);
  }

  auto kernel = rows.norm.dtype == SPARKFP4_BF16  ? latent_kernel<Bf16>
                : rows.norm.dtype == SPARKFP4_F16 ? latent_kernel<F16>
                                                  : latent_kernel<F32>;
  return launch_rows<LatentRows>(kernel, rows, rows.norm.rows, stream);
}

}  // namespace sparkfp4::cuda
