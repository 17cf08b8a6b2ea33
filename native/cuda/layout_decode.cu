// Decode of NVFP4 tensors: a warp a row, a thread as many codes as make 16 bytes of values, several times at once.
#include "code_values.cuh"
#include "layout_pieces.cuh"
#include "layouts.h"

namespace sparkfp4::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kAhead = 4;
constexpr int kGroup = 16;  // codes of a scale
constexpr int64_t kMaxGrid = 65535;
constexpr uint32_t kInfinityBits = 0x7f800000;

struct ToF32 {
  using Codes = uint16_t;

  static __device__ __forceinline__ uint4 decoded(Codes codes, float d) {
    uint32_t words[4];
    stored_four(codes, d, words);
    return {words[0], words[1], words[2], words[3]};
  }
};

struct ToBf16 {
  using Codes = uint32_t;

  static __device__ __forceinline__ uint32_t pair(const float *values) {
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(values[1]), "f"(values[0]));
    return pair;
  }

  // The conversion has a NaN of its own.
  static __device__ __forceinline__ uint32_t pair_with_nan(const float *values) {
    uint32_t even = values[0] == values[0] ? pair(values) & 0xffffu : kNanBits >> 16;
    uint32_t odd = values[1] == values[1] ? pair(values) & 0xffff0000u : kNanBits;
    return even | odd;
  }

  static __device__ __forceinline__ uint4 decoded(Codes codes, float d) {
    float values[8];
    decode_four(codes, d, values);
    decode_four(codes >> 16, d, values + 4);
    // of a finite d no product is NaN
    if ((__float_as_uint(d) & 0x7fffffffu) < kInfinityBits) {
      return {pair(values), pair(values + 2), pair(values + 4), pair(values + 6)};
    }

    return {pair_with_nan(values), pair_with_nan(values + 2), pair_with_nan(values + 4), pair_with_nan(values + 6)};
  }
};

template <typename To>
__global__ void __launch_bounds__(kThreads) decode_kernel(const __grid_constant__ DecodeTask task) {
  constexpr int kCodes = 2 * sizeof(typename To::Codes);  // of a thread
  constexpr int kOfTile = kNvfp4ElemsPerTile / kCodes;    // threads
  const NVFP4Tensor &view = task.view;
  const int lane = threadIdx.x % kWarp;
  const int32_t words = static_cast<int32_t>(task.k / kCodes);
  // A tile's scales are in their order, those of activations as {s0, s2, s1, s3}.
  const int group = lane % kOfTile / (kGroup / kCodes);
  const int byte = task.is_activation ? group >> 1 | (group & 1) << 1 : group;
  for (int64_t expert = blockIdx.y; expert < task.experts; expert += gridDim.y) {
    const float global = nvfp4TensorScaleAt(view.global_scale, expert);
    for (int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kWarp; row < task.rows;
         row += static_cast<int64_t>(gridDim.x) * (kThreads / kWarp)) {
      auto tile = [&](int32_t i) {
        return task.is_activation ? Dim3{static_cast<int32_t>(row), i, 0}
                                  : Dim3{static_cast<int32_t>(expert), static_cast<int32_t>(row), i};
      };
      auto scale_word = [&](int32_t i) {
        return task.is_activation ? view.tileOffsetInt4(tile(i)) / kNvfp4Int4PerTilePayload
                                  : view.tileScaleIndex(tile(i));
      };
      const auto *codes =
          reinterpret_cast<const typename To::Codes *>(view.quantized_data + 16 * view.tileOffsetInt4(tile(0)));
      const int64_t scale_step = 4 * (scale_word(1) - scale_word(0));
      const unsigned char *scales = view.block_scale + 4 * scale_word(0) + lane / kOfTile * scale_step + byte;
      unsigned char *out = task.out + (expert * task.rows + row) * words * 16;
      for (int32_t first = 0; first < words; first += kAhead * kWarp) {
        typename To::Codes own[kAhead];
        uint32_t scale[kAhead];
#pragma unroll
        for (int i = 0; i < kAhead; i++) {
          int32_t at = first + i * kWarp;
          if (at + lane < words) {
            own[i] = codes[at + lane];
            scale[i] = scales[at / kOfTile * scale_step];
          }
        }

#pragma unroll
        for (int i = 0; i < kAhead; i++) {
          int32_t at = first + i * kWarp + lane;
          if (at < words) {
            write16(out + static_cast<int64_t>(at) * 16, To::decoded(own[i], __fmul_rn(e4m3(scale[i]), global)), 16);
          }
        }
      }
    }
  }
}

}  // namespace

cudaError_t launch_decode(const DecodeTask &task, cudaStream_t stream) {
  if (task.experts * task.rows * task.k == 0) {
    return cudaSuccess;
  }

  int64_t blocks = (task.rows + kThreads / kWarp - 1) / (kThreads / kWarp);
  dim3 grid(static_cast<unsigned>(blocks < kMaxGrid ? blocks : kMaxGrid),
            static_cast<unsigned>(task.experts < kMaxGrid ? task.experts : kMaxGrid));
  auto kernel = task.dtype == SPARKFP4_F32 ? decode_kernel<ToF32> : decode_kernel<ToBf16>;
  kernel<<<grid, kThreads, 0, stream>>>(task);
  return cudaGetLastError();
}

}  // namespace sparkfp4::cuda
