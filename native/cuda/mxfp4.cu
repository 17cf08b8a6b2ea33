// The cast of MXFP4: a thread a source block of 32, whose codes are copied and whose scale becomes two.
#include "encode.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kBias = 127;
constexpr int kTop = 8;          // kmax's exponent in units of the global scale
constexpr int kExactBelow = 17;  // 2^-9 to 2^8 are E4M3's powers of two
constexpr int kSourceBytes = 16;

// The E4M3 byte of 2^(8 - below).
__device__ __forceinline__ uint32_t power_byte(int below) {
  int exponent = kTop - below;
  return exponent >= -6 ? (exponent + 7) << 3 : 1u << (exponent + 9);
}

// The sum of the squares of eight codes, in quarters.
__device__ __forceinline__ uint32_t quarter_squares(uint32_t word, uint32_t sum) {
  uint32_t low = twice_magnitudes(word);
  uint32_t high = twice_magnitudes(word >> 16);
  return __dp4a(high, high, __dp4a(low, low, sum));
}

// The two tiles of blocks that a tile of source blocks becomes.
template <bool kSums>
__global__ void __launch_bounds__(kThreads) cast_kernel(const __grid_constant__ Batch batch,
                                                        const __grid_constant__ Cast cast) {
  admit_next_launch();
  wait_for_earlier_launches();
  bool aligned_out = is_aligned(cast.packed, 16);
  bool paired_out = is_aligned(cast.scales, 2);
  bool modelopt = cast.recipe == SPARKFP4_MODELOPT;
  uint32_t largest = 0;
  unsigned long long requantized = 0;
  PairSums sums;
  int segment_index = 0;
  int summed = -1;
  for (uint32_t tile = blockIdx.x; tile < batch.tiles; tile += gridDim.x) {
    segment_index = segment_of(batch, tile, segment_index);
    const DeviceSegment &segment = batch.segments[segment_index];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&cast.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    uint32_t index = (tile - segment.first_tile) * kThreads + threadIdx.x;
    if (index >= segment.blocks / 2) {
      continue;
    }

    const unsigned char *source = segment.data + static_cast<int64_t>(index) * kSourceBytes;
    uint4 codes = load16(source, is_aligned(segment.data, 16));
    uint32_t scale = segment.scales[index];
    largest = max(largest, scale);
    int below = cast.kmax + kBias - static_cast<int>(scale);
    uint32_t bytes[2];
    Squares squares[2] = {};
    // Bits of a float whose unit in the last place divides the squares.
    uint32_t unit = 0;
    if (scale == 0) {
      codes = make_uint4(0, 0, 0, 0);
      bytes[0] = bytes[1] = modelopt ? 0x38 : 0x20;
    } else if (below >= 0 && below <= kExactBelow) {
      bytes[0] = bytes[1] = power_byte(below);
      if constexpr (kSums) {
        int k = static_cast<int>(scale) - kBias;
        if (k >= kMinSquareExponent && k <= kMaxSquareExponent) {
          // Nothing rounds, and the squares are quarters of 4^k.
          unit = static_cast<uint32_t>(min(2 * k + 148, 254)) << 23;
          float half = __uint_as_float((scale - 1) << 23);
          squares[0].weight = __uint2float_rn(quarter_squares(codes.x, quarter_squares(codes.y, 0))) * half * half;
          squares[1].weight = __uint2float_rn(quarter_squares(codes.z, quarter_squares(codes.w, 0))) * half * half;
        } else {
          float value = __uint_as_float(scale << 23);
          squares_plainly<E2m1>(source, value, make_uint2(codes.x, codes.y), value, &squares[0]);
          squares_plainly<E2m1>(source + kPackedBlock, value, make_uint2(codes.z, codes.w), value, &squares[1]);
          squares[0].error = squares[1].error = 0;
        }
      }
    } else if (below > kExactBelow) {
      float value = __uint_as_float(scale << 23);
      for (int i = 0; i < 2; i++) {
        Encoded encoded;
        encode_plainly<E2m1>(source + i * kPackedBlock, value, modelopt, cast.global_scale, &encoded);
        bytes[i] = encoded.byte;
        (i == 0 ? codes.x : codes.z) = encoded.codes.x;
        (i == 0 ? codes.y : codes.w) = encoded.codes.y;
        if constexpr (kSums) {
          squares_plainly<E2m1>(source + i * kPackedBlock, value, encoded.codes, encoded.d, &squares[i]);
        }
      }

      requantized += 2;
    } else {
      // Above kmax or no scale: refused once all have been seen.
      continue;
    }

    int64_t out = segment.first_block + 2 * static_cast<int64_t>(index);
    if (aligned_out) {
      *reinterpret_cast<uint4 *>(cast.packed + out * kPackedBlock) = codes;
    } else {
      store8(cast.packed + out * kPackedBlock, make_uint2(codes.x, codes.y), false);
      store8(cast.packed + (out + 1) * kPackedBlock, make_uint2(codes.z, codes.w), false);
    }

    if (paired_out) {
      *reinterpret_cast<uint16_t *>(cast.scales + out) = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
    } else {
      cast.scales[out] = static_cast<unsigned char>(bytes[0]);
      cast.scales[out + 1] = static_cast<unsigned char>(bytes[1]);
    }

    if constexpr (kSums) {
      sums.add(0, squares[0], unit);
      sums.add(1, squares[1], unit);
    }
  }

  if constexpr (kSums) {
    if (summed >= 0) {
      sums.flush(&cast.workspace->sums[summed]);
    }
  }

  for (int i = 16; i > 0; i /= 2) {
    requantized += __shfl_xor_sync(0xffffffffu, requantized, i);
  }

  if (threadIdx.x % 32 == 0 && requantized != 0) {
    atomicAdd(&cast.workspace->requantized, requantized);
  }

  raise(&cast.workspace->largest, largest);
}

}  // namespace

cudaError_t launch_cast(const Batch &batch, const Cast &cast, cudaStream_t stream) {
  auto kernel = cast.with_sums ? cast_kernel<true> : cast_kernel<false>;
  return launch_tiles(kernel, batch, cast, stream, cast.with_sums ? kWaves : 1);
}

}  // namespace sparkfp4::cuda
