// Rows by teams of sixteen threads. Lane l of a team has the elements 2 l and 2 l + 1 of each block of 32, so that its
// sums are those of the lane l that sparkfp4_keys.h defines, and a team reads a block as consecutive words.
#pragma once

#include "blocks.cuh"
#include "keys.h"
#include "walk.cuh"

namespace sparkfp4::cuda {

constexpr int kTeam = 16;
constexpr uint32_t kInfinityBits = 0x7f800000;
constexpr int kFour = 4;  // blocks of a row of 128, which stays in registers
constexpr uint32_t kSix = 0x40c00000;
constexpr uint32_t kSmallestAmax = 0x01c00000;  // 6 * 2^-126

enum class Layout { kBlocks, kPages, kQueries };

struct Pair {
  float even;
  float odd;
};

__device__ __forceinline__ int team_lane() { return threadIdx.x % kTeam; }

// The rows of a warp's two teams follow each other. Both teams take every step, so that the whole warp exchanges at
// once; where there is but one row left, one of them repeats it for nothing.
__device__ __forceinline__ int64_t first_rows() {
  return static_cast<int64_t>(blockIdx.x) * (blockDim.x / kTeam) + threadIdx.x / 32 * 2;
}

__device__ __forceinline__ int64_t row_step() { return static_cast<int64_t>(gridDim.x) * (blockDim.x / kTeam); }
__device__ __forceinline__ int team() { return threadIdx.x % 32 / kTeam; }

template <typename T>
__device__ __forceinline__ T from_partner(T value, int distance) {
  return __shfl_xor_sync(0xffffffffu, value, distance);
}

// The tree over sixteen lanes: l with l + 8, l + 4, l + 2, l + 1. All lanes get it, for sums do not mind whose term is
// first.
__device__ __forceinline__ float team_sum(float x) {
#pragma unroll
  for (int half = kTeam / 2; half > 0; half /= 2) {
    x = __fadd_rn(x, from_partner(x, half));
  }

  return x;
}

__device__ __forceinline__ uint32_t team_max(uint32_t x) {
#pragma unroll
  for (int half = kTeam / 2; half > 0; half /= 2) {
    x = max(x, from_partner(x, half));
  }

  return x;
}

__device__ __forceinline__ float pair_sum(const Pair &x) { return __fadd_rn(x.even, x.odd); }

__device__ __forceinline__ float pair_squares(const Pair &x) {
  return __fadd_rn(__fmul_rn(x.even, x.even), __fmul_rn(x.odd, x.odd));
}

__device__ __forceinline__ float inverse_root(float x) { return __fdiv_rn(1.0f, __fsqrt_rn(x)); }

__device__ __forceinline__ uint32_t magnitude(float x) { return __float_as_uint(x) & 0x7fffffffu; }

__device__ __forceinline__ uint32_t larger_magnitude(const Pair &x) { return max(magnitude(x.even), magnitude(x.odd)); }

// The largest of each of four over the team's lanes: that of number l / 4 to lane l.
__device__ __forceinline__ uint32_t largest_of_four(const uint32_t *largest) {
  bool upper = team_lane() & 8;
  uint32_t first = max(upper ? largest[2] : largest[0], from_partner(upper ? largest[0] : largest[2], 8));
  uint32_t second = max(upper ? largest[3] : largest[1], from_partner(upper ? largest[1] : largest[3], 8));
  upper = team_lane() & 4;
  uint32_t own = max(upper ? second : first, from_partner(upper ? first : second, 4));
  own = max(own, from_partner(own, 2));
  return max(own, from_partner(own, 1));
}

// A pair as it is in memory.
template <typename Type>
struct PairBits {
  static constexpr int kBytes = 2 * sizeof(typename Type::Bits);
  uint32_t words[kBytes / 4];

  __device__ __forceinline__ void load(const unsigned char *source, bool aligned) {
    if (aligned) {
      if constexpr (kBytes == 4) {
        words[0] = *reinterpret_cast<const uint32_t *>(source);
      } else {
        uint2 both = *reinterpret_cast<const uint2 *>(source);
        words[0] = both.x;
        words[1] = both.y;
      }

      return;
    }

#pragma unroll
    for (int i = 0; i < kBytes / 4; i++) {
      words[i] = source[4 * i] | source[4 * i + 1] << 8 | source[4 * i + 2] << 16 |
                 static_cast<uint32_t>(source[4 * i + 3]) << 24;
    }
  }

  __device__ __forceinline__ Pair values() const {
    if constexpr (kBytes == 4) {
      return {low_half<Type>(words[0]), high_half<Type>(words[0])};
    } else {
      return {__uint_as_float(words[0]), __uint_as_float(words[1])};
    }
  }
};

template <typename Type>
__device__ __forceinline__ Pair load_pair(const unsigned char *source, bool aligned) {
  PairBits<Type> bits;
  bits.load(source, aligned);
  return bits.values();
}

__device__ __forceinline__ void store_word(unsigned char *out, uint32_t word, bool aligned) {
  if (aligned) {
    *reinterpret_cast<uint32_t *>(out) = word;
    return;
  }

#pragma unroll
  for (int i = 0; i < 4; i++) {
    out[i] = static_cast<unsigned char>(word >> 8 * i);
  }
}

// To bfloat16, nearest even; NaN stays NaN.
__device__ __forceinline__ float round_bf16(float x) {
  uint32_t bits = __float_as_uint(x);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  return __uint_as_float((bits & 0x7fffffffu) > kInfinityBits ? bits : rounded);
}

__device__ __forceinline__ Pair round_bf16(const Pair &x) { return {round_bf16(x.even), round_bf16(x.odd)}; }

__device__ __forceinline__ uint32_t bf16_pair(const Pair &x) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x.odd), "f"(x.even));
  return pair;
}

// A magnitude, not above the format's largest, to its code: the spacing of the format's values is constant within a
// binade, so that adding 2^23 spacings rounds and leaves their count in the sum's low bits. *value gets what it means.
template <int kMantissaBits, int kLowestExponent>
__device__ __forceinline__ uint32_t narrow(uint32_t magnitude, float *value) {
  constexpr uint32_t kLowest = static_cast<uint32_t>(127 + kLowestExponent) << 23;
  uint32_t exponent = max(magnitude & kInfinityBits, kLowest);
  uint32_t magic = exponent + (static_cast<uint32_t>(23 - kMantissaBits) << 23);
  float sum = __fadd_rn(__uint_as_float(magnitude), __uint_as_float(magic));
  *value = __fsub_rn(sum, __uint_as_float(magic));
  return __float_as_uint(sum) - magic + ((exponent - kLowest) >> (23 - kMantissaBits));
}

// A pair as bfloat16 or binary16, nearest even.
template <typename Type>
__device__ __forceinline__ uint32_t type_pair(const Pair &x) {
  if constexpr (Type::kSource == Bf16::kSource) {
    return bf16_pair(x);
  } else {
    uint32_t pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x.odd), "f"(x.even));
    return pair;
  }
}

// Stores a pair as the type, nearest even.
template <typename Type>
__device__ __forceinline__ void store_pair(unsigned char *out, const Pair &x, bool aligned) {
  if constexpr (Type::kSource == F32::kSource) {
    store8(out, make_uint2(__float_as_uint(x.even), __float_as_uint(x.odd)), aligned);
  } else {
    store_word(out, type_pair<Type>(x), aligned);
  }
}

// From this magnitude on a value is infinite once it is stored.
template <typename Type>
constexpr uint32_t kStoredInfinity = Type::kSource == F32::kSource    ? kInfinityBits
                                     : Type::kSource == Bf16::kSource ? kRoundsToInfinity
                                                                      : 0x477ff000u;

// Lowers *first to the row, where *first is -1 at the start.
__device__ __forceinline__ void mark(int64_t *first, int64_t row) {
  atomicMin(reinterpret_cast<unsigned long long *>(first), static_cast<unsigned long long>(row));
}

__device__ __forceinline__ int64_t quotient(int64_t n, const Divisor &divisor) {
  return n < divisor.value ? 0 : divisor.shift >= 0 ? n >> divisor.shift : n / divisor.value;
}

// A token's page and its place there.
struct Place {
  unsigned char *page;
  int64_t token;
};

// False where the token is not to be inserted; tells bad, unless it is null, of one that cannot be.
__device__ __forceinline__ bool place_of(const DevicePages &pages, int64_t slot, int64_t row,
                                         sparkfp4_cuda_bad_rows *bad, Place *place) {
  if (slot < 0 || slot >= pages.slots) {
    if (slot >= 0 && bad != nullptr) {
      mark(&bad->slot, row);
    }

    return false;
  }

  int64_t page = quotient(slot, pages.tokens);
  *place = {pages.data + page * pages.stride, slot - page * pages.tokens.value};
  return true;
}

__device__ __forceinline__ uint16_t load_half(const unsigned char *source) {
  return is_aligned(source, 2) ? *reinterpret_cast<const uint16_t *>(source)
                               : static_cast<uint16_t>(source[0] | source[1] << 8);
}

__device__ __forceinline__ float weight_of(const QueryHeads &heads, int64_t i) {
  switch (heads.weights_dtype) {
    case SPARKFP4_BF16:
      return widen<Bf16>(load_half(heads.weights + 2 * i));
    case SPARKFP4_F16:
      return widen<F16>(load_half(heads.weights + 2 * i));
    default: {
      PairBits<Bf16> bits;
      bits.load(heads.weights + 4 * i, is_aligned(heads.weights, 4));
      return __uint_as_float(bits.words[0]);
    }
  }
}

// 2^(127 - u)
__device__ __forceinline__ float inverse_scale(uint32_t u) { return __uint_as_float((254 - u) << 23); }

// The scale of a block, but for the rule that looks at its elements.
__device__ __forceinline__ uint32_t scale_byte(sparkfp4_scale_rule rule, uint32_t amax) {
  switch (rule) {
    case SPARKFP4_CEIL:
      return ((max(amax, kSmallestAmax) + 0x3fffff) >> 23) - 2;
    case SPARKFP4_EVEN:
      return max((amax + 0x200000) >> 23, 2) - 2;
    case SPARKFP4_FLOOR:
      return max(amax >> 23, 2) - 2;
    default:
      return max(amax >> 23, 3) - 2;
  }
}

// Thread blocks for so many rows.
template <typename... Parameters>
cudaError_t row_grid(void (*kernel)(Parameters...), int64_t rows, int *grid, int threads = kThreads) {
  int teams = threads / kTeam;
  return grid_size(kernel, (rows + teams - 1) / teams, grid, threads);
}

template <typename Rows>
cudaError_t launch_rows(void (*kernel)(Rows), const Rows &rows, int64_t count, cudaStream_t stream,
                        int threads = kThreads) {
  if (count == 0) {
    return cudaSuccess;
  }

  int grid;
  cudaError_t error = row_grid(kernel, count, &grid, threads);
  if (error == cudaSuccess) {
    kernel<<<grid, threads, 0, stream>>>(rows);
    error = cudaGetLastError();
  }

  return error;
}

}  // namespace sparkfp4::cuda
