// Quantized sources to bfloat16: a warp a row, a thread eight of its elements.
#include "walk.cuh"

namespace sparkfp4::cuda {
namespace {

template <typename Type>
__global__ void __launch_bounds__(kThreads) dequantize_kernel(const __grid_constant__ Dequantize task,
                                                              FastDivisor run) {
  constexpr int kElements = 8;
  constexpr int kBytes = Type::kBlockBytes / 2;
  admit_next_launch();
  wait_for_earlier_launches();
  int64_t warp = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
  int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  uint32_t largest = 0;
  Source source = {};
  source.scale_type = task.source.scale_type;
  // One scale a block of one column: an index is all that is left.
  source.row_blocks = source.block_rows = {0, 0, 32};
  for (int64_t row = warp; row < task.rows; row += warps) {
    const unsigned char *codes = task.codes + row * task.row_bytes;
    int64_t first_scale = task.block_rows == 0 ? 0 : row / task.block_rows * task.row_scales;
    sparkfp4_scale_type type = task.source.scale_type;
    int bytes = type == SPARKFP4_SCALE_F32 ? 4 : type == SPARKFP4_SCALE_E8M0 ? 1 : 2;
    const unsigned char *scales = task.scales + first_scale * bytes;
    unsigned char *out = task.out + 2 * row * task.cols;
    bool aligned = is_aligned(codes, kBytes);
    bool aligned_out = is_aligned(out, 16);
    for (int64_t column = threadIdx.x % 32 * kElements; column < task.cols; column += 32 * kElements) {
      int64_t scale_index = divide(static_cast<uint32_t>(column), run);
      float scale = source_scale(source, scales + scale_index * bytes, 0);
      int64_t left = task.cols - column;
      const unsigned char *from = codes + column * Type::kBlockBytes / kBlock;
      uint16_t values[kElements];
      if (left >= kElements) {
        uint32_t words[2];
        if (kBytes == 8) {
          uint2 both = load8(from, aligned);
          words[0] = both.x, words[1] = both.y;
        } else if (aligned) {
          words[0] = *reinterpret_cast<const uint32_t *>(from);
        } else {
          words[0] = from[0] | from[1] << 8 | from[2] << 16 | static_cast<uint32_t>(from[3]) << 24;
        }

#pragma unroll
        for (int i = 0; i < kElements; i++) {
          float value = kBytes == 8 ? e4m3_value(words[i / 4] >> i % 4 * 8 & 0xff)
                                    : nibble_value<Type>(words[0] >> i * 4 & 0xf);
          uint32_t bits = __float_as_uint(__fmul_rn(value, scale));
          largest = max(largest, bits & F32::kMagnitude);
          values[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        }
      } else {
        for (int i = 0; i < left; i++) {
          uint32_t bits = __float_as_uint(__fmul_rn(code_value<Type>(from, i), scale));
          largest = max(largest, bits & F32::kMagnitude);
          uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
          out[2 * (column + i)] = static_cast<unsigned char>(rounded);
          out[2 * (column + i) + 1] = static_cast<unsigned char>(rounded >> 8);
        }

        continue;
      }

      if (aligned_out) {
        uint4 vector = make_uint4(values[0] | values[1] << 16, values[2] | values[3] << 16,
                                  values[4] | values[5] << 16, values[6] | values[7] << 16);
        *reinterpret_cast<uint4 *>(out + 2 * column) = vector;
      } else {
#pragma unroll
        for (int i = 0; i < kElements; i++) {
          out[2 * (column + i)] = static_cast<unsigned char>(values[i]);
          out[2 * (column + i) + 1] = static_cast<unsigned char>(values[i] >> 8);
        }
      }
    }
  }

  raise(&task.workspace->largest, largest);
}

}  // namespace

cudaError_t launch_dequantize(const Dequantize &task, cudaStream_t stream) {
  auto kernel = task.source.kind == E4m3::kSource   ? dequantize_kernel<E4m3>
                : task.source.kind == Int4::kSource ? dequantize_kernel<Int4>
                                                    : dequantize_kernel<E2m1>;
  int grid;
  int64_t tiles = (task.rows + kThreads / 32 - 1) / (kThreads / 32);
  // Tiles are of whole rows.
  constexpr int64_t kLeastRows = 2;
  cudaError_t error = grid_size(kernel, tiles, &grid, kThreads, kWaves, kLeastRows);
  if (error != cudaSuccess) {
    return error;
  }

  return launch_after(kernel, grid, kThreads, stream, task, fast_divisor(task.run));
}

}  // namespace sparkfp4::cuda
