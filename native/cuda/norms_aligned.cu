// RMSNorm and the entries of fp8_ds_mla at aligned addresses: sixteen threads a row, each with eight consecutive
// elements of every 128. A row of 128 L elements stays in registers from its one load on.
#include "e4m3.cuh"
#include "words.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kNormThreads = 128;
constexpr int kSpan = kTeam * kEight;  // elements that a team loads at once
constexpr int kLatentSpans = kLatent / kSpan;
static_assert(kSpan == kTile, "a tile of a latent is what a team loads at once");

// Sums a row's squares: thread 4 g + t has the lanes 4 t to 4 t + 3 of blocks g, g + 4, ..., which four threads
// exchange so that it adds lane 4 t + g in the order of blocks. Spans that are not there are zeros, which change no sum
// of squares.
template <typename Type, int kSpans>
__device__ __forceinline__ float square_sum(const Eight<Type> *spans) {
  float sum = 0;
#pragma unroll
  for (int s = 0; s < kSpans; s++) {
    float x[kEight];
    float lanes[kFour];
    spans[s].values(x);
#pragma unroll
    for (int l = 0; l < kFour; l++) {
      lanes[l] = pair_squares({x[2 * l], x[2 * l + 1]});
    }

    transpose_four<4>(lanes);
#pragma unroll
    for (int b = 0; b < kFour; b++) {
      sum = __fadd_rn(sum, lanes[b]);
    }
  }

  // lane l with l + 8 and l + 4, which t tells apart, then l + 2 and l + 1, which g does
#pragma unroll
  for (int distance : {2, 1, 8, 4}) {
    sum = __fadd_rn(sum, from_partner(sum, distance));
  }

  return sum;
}

// 1 / sqrt(sum / cols + eps)
__device__ __forceinline__ float rms_factor(float sum, float cols, float eps) {
  return __frcp_rn(__fsqrt_rn(__fadd_rn(__fdiv_rn(sum, cols), eps)));
}

// y = x * r * weight of eight elements.
template <typename Type>
__device__ __forceinline__ void scale_eight(const Eight<Type> &eight, float r, const float *weight, float *y) {
  Eight<F32> of_weight;
  float w[kEight];
  of_weight.load(reinterpret_cast<const unsigned char *>(weight));
  of_weight.values(w);
  eight.values(y);
#pragma unroll
  for (int i = 0; i < kEight; i++) {
    y[i] = __fmul_rn(__fmul_rn(y[i], r), w[i]);
  }
}

__device__ __forceinline__ uint32_t largest_of_eight(const float *x) {
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kEight; i++) {
    largest = max(largest, magnitude(x[i]));
  }

  return largest;
}

// Stores eight elements as the type, nearest even.
template <typename Type>
__device__ __forceinline__ void store_eight(unsigned char *out, const float *x) {
  uint4 *words = reinterpret_cast<uint4 *>(out);
  if constexpr (Type::kSource == F32::kSource) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      words[i] = make_uint4(__float_as_uint(x[4 * i]), __float_as_uint(x[4 * i + 1]), __float_as_uint(x[4 * i + 2]),
                            __float_as_uint(x[4 * i + 3]));
    }
  } else {
    uint32_t pairs[kEight / 2];
#pragma unroll
    for (int i = 0; i < kEight / 2; i++) {
      pairs[i] = type_pair<Type>({x[2 * i], x[2 * i + 1]});
    }

    words[0] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
}

template <typename Type, int kSpans>
__global__ void __launch_bounds__(kNormThreads, 4) aligned_norm_kernel(const __grid_constant__ NormRows rows) {
  constexpr int kElement = sizeof(typename Type::Bits);
  const int column = team_lane() * kEight;
  const int cols = static_cast<int>(rows.cols);
  for (int64_t own = first_rows() + team(); own - team() < rows.rows; own += row_step()) {
    bool active = own < rows.rows;
    int64_t offset = (min(own, rows.rows - 1) * cols + column) * kElement;
    const unsigned char *source = rows.source + offset;
    Eight<Type> spans[kSpans];
#pragma unroll
    for (int s = 0; s < kSpans; s++) {
      spans[s] = {};
      if (s * kSpan + column < cols) {
        spans[s].load(source + s * kSpan * kElement);
      }
    }

    float r = rms_factor(square_sum<Type, kSpans>(spans), static_cast<float>(cols), rows.eps);
    uint32_t largest = 0;
#pragma unroll
    for (int s = 0; s < kSpans; s++) {
      if (s * kSpan + column < cols) {
        float y[kEight];
        scale_eight(spans[s], r, rows.weight + s * kSpan + column, y);
        largest = max(largest, largest_of_eight(y));
        if (active) {
          store_eight<Type>(rows.out + offset + s * kSpan * kElement, y);
        }
      }
    }

    if (active && largest >= kStoredInfinity<Type>) {
      mark(&rows.bad->normalised, own);
    }
  }
}

// RN(y / scale), with r = RN(1 / scale): the first correction leaves less than a last place, so that the remainder is
// exact and the second rounds as division does (Markstein). Remainders are of q * scale - y and are taken away, so that
// -0 stays so. E4M3 has no quotients that are too small for their remainders.
__device__ __forceinline__ float quotient_of(float y, float scale, float r) {
  float q = __fmul_rn(y, r);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    q = __fmaf_rn(-__fmaf_rn(q, scale, -y), r, q);
  }

  return q;
}

// Scales for which quotient_of serves. The last places of a quotient from 2^-11 on, half of the least that E4M3 does not
// round to zero, and of a scale have a product of 2^-149 at least, so that the remainder is not cut off.
constexpr float kLeastScale = 0x1p-80f;
constexpr float kLargestScale = 0x1p100f;

// The E4M3 codes of eight numbers, the first in the lowest bits.
__device__ __forceinline__ uint2 e4m3_of_eight(const float *x) {
  uint32_t words[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    uint32_t pairs[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
      pairs[j] = e4m3_pair({x[4 * i + 2 * j], x[4 * i + 2 * j + 1]});
    }

    words[i] = __byte_perm(pairs[0], pairs[1], 0x5410);
  }

  return make_uint2(words[0], words[1]);
}

// The normalised latent, and its entry where the token has a slot.
template <typename Type>
__global__ void __launch_bounds__(kNormThreads) aligned_latent_kernel(const __grid_constant__ LatentRows rows) {
  constexpr int kElement = sizeof(typename Type::Bits);
  const NormRows &norm = rows.norm;
  const int lane = team_lane();
  const int column = lane * kEight;
  for (int64_t own = first_rows() + team(); own - team() < norm.rows; own += row_step()) {
    int64_t row = min(own, norm.rows - 1);
    bool active = own < norm.rows;
    int64_t offset = (row * kLatent + column) * kElement;
    Eight<Type> spans[kLatentSpans];
#pragma unroll
    for (int s = 0; s < kLatentSpans; s++) {
      spans[s].load(norm.source + offset + s * kSpan * kElement);
    }

    // four elements of what is rotated
    const unsigned char *of_rope = rows.rope + (row * kRope + lane * 4) * kElement;
    Pair rope[2];
    int64_t slot = -1;
    bool inserted = active && row < rows.slot_count;
    if (inserted) {
      slot = rows.slots[row];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        rope[i] = load_pair<Type>(of_rope + i * 2 * kElement, true);
      }
    }

    float r = rms_factor(square_sum<Type, kLatentSpans>(spans), kLatent, norm.eps);
    float y[kLatentSpans][kEight];
    uint32_t largest[kLatentSpans];
#pragma unroll
    for (int s = 0; s < kLatentSpans; s++) {
      scale_eight(spans[s], r, norm.weight + s * kSpan + column, y[s]);
      largest[s] = largest_of_eight(y[s]);
      if (active) {
        store_eight<Type>(norm.out + offset + s * kSpan * kElement, y[s]);
      }
    }

    // of tile l / 4 to lane l
    uint32_t amax = largest_of_four(largest);
    if (active && amax >= kStoredInfinity<Type>) {
      mark(&norm.bad->normalised, row);
    }

    if (rows.round_to_bf16) {
      amax = __float_as_uint(round_bf16(__uint_as_float(amax)));
#pragma unroll
      for (int s = 0; s < kLatentSpans; s++) {
#pragma unroll
        for (int i = 0; i < kEight; i++) {
          y[s][i] = round_bf16(y[s][i]);
        }
      }
    }

    bool finite = amax < kInfinityBits;
    float scale = fmaxf(__fdiv_rn(__uint_as_float(amax), 448.0f), 0x1p-126f);
    Place place = {};
    inserted = inserted && place_of(rows.pages, slot, row, lane == 0 ? norm.bad : nullptr, &place);
    unsigned char *entry = place.page + place.token * kEntryBytes;
    if (inserted && lane % kTiles == 0) {
      *reinterpret_cast<float *>(entry + kLatent + lane) = scale;
    }

    bool usual = __all_sync(0xffffffffu, scale >= kLeastScale && scale <= kLargestScale);
    float inverse = __frcp_rn(scale);
#pragma unroll
    for (int tile = 0; tile < kTiles; tile++) {
      float tile_scale = __shfl_sync(0xffffffffu, scale, tile * kTiles, kTeam);
      float tile_inverse = __shfl_sync(0xffffffffu, inverse, tile * kTiles, kTeam);
      float *q = y[tile];
      if (usual) {
#pragma unroll
        for (int i = 0; i < kEight; i++) {
          q[i] = quotient_of(q[i], tile_scale, tile_inverse);
        }
      } else {
#pragma unroll
        for (int i = 0; i < kEight; i++) {
          q[i] = __fdiv_rn(q[i], tile_scale);
        }
      }

      if (inserted) {
        *reinterpret_cast<uint2 *>(entry + tile * kTile + column) = e4m3_of_eight(q);
      }
    }

    if (inserted) {
      finite = finite && max(larger_magnitude(rope[0]), larger_magnitude(rope[1])) < kRoundsToInfinity;
      *reinterpret_cast<uint2 *>(entry + kLatent + kTiles * 4 + lane * kEight) =
          make_uint2(bf16_pair(rope[0]), bf16_pair(rope[1]));
      if (!finite) {
        mark(&norm.bad->encoded, row);
      }
    }
  }
}

template <typename Type>
auto norm_kernel_of(int64_t cols) {
  return cols <= 4 * kSpan   ? aligned_norm_kernel<Type, 4>
         : cols <= 8 * kSpan ? aligned_norm_kernel<Type, 8>
                             : aligned_norm_kernel<Type, 12>;
}

bool is_aligned_norm(const NormRows &rows) {
  return is_aligned(rows.source, kWordBytes) && is_aligned(rows.out, kWordBytes) && is_aligned(rows.weight, kWordBytes);
}

}  // namespace

bool aligned_norm(const NormRows &rows) {
  int64_t most = rows.dtype == SPARKFP4_F32 ? 8 * kSpan : 16 * kSpan;
  return rows.cols <= most && is_aligned_norm(rows);
}

bool aligned_latents(const LatentRows &rows) {
  return is_aligned_norm(rows.norm) && is_aligned(rows.rope, kWordBytes) &&
         is_aligned(rows.pages.data, kWordBytes) && rows.pages.stride % kWordBytes == 0;
}

cudaError_t launch_aligned_norm(const NormRows &rows, cudaStream_t stream) {
  bool longest = rows.cols > 12 * kSpan;
  auto kernel = rows.dtype == SPARKFP4_BF16 ? (longest ? aligned_norm_kernel<Bf16, 16> : norm_kernel_of<Bf16>(rows.cols))
                : rows.dtype == SPARKFP4_F16
                    ? (longest ? aligned_norm_kernel<F16, 16> : norm_kernel_of<F16>(rows.cols))
                    : (rows.cols <= 4 * kSpan ? aligned_norm_kernel<F32, 4> : aligned_norm_kernel<F32, 8>);
  return launch_rows<NormRows>(kernel, rows, rows.rows, stream, kNormThreads);
}

cudaError_t launch_aligned_latents(const LatentRows &rows, cudaStream_t stream) {
  auto kernel = rows.norm.dtype == SPARKFP4_BF16  ? aligned_latent_kernel<Bf16>
                : rows.norm.dtype == SPARKFP4_F16 ? aligned_latent_kernel<F16>
                                                  : aligned_latent_kernel<F32>;
  return launch_rows<LatentRows>(kernel, rows, rows.norm.rows, stream, kNormThreads);
}

}  // namespace sparkfp4::cuda
