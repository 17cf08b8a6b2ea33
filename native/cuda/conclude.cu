// What is left once all blocks of a batch have been seen: sums in the order of the definition, the first element that
// is not finite, the outcome.
#include "conclude.cuh"
#include "encode.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kConcludeThreads = 1024;
constexpr int kWorkers = kConcludeThreads - 32;
static_assert(kWorkers % kLanes == 0, "a round begins at lane 0");
constexpr uint32_t kLargestScale = 251;
constexpr uint32_t kRoundsToInfinity = 0x7f7f8000;
constexpr int kCastStrip = 256;  // source blocks that the cast of a CPU looks at before it goes on

template <typename Type>
__device__ __noinline__ Squares squares_of(const unsigned char *data, uint32_t index, float scale, uint2 codes,
                                           float d) {
  const unsigned char *source = data + static_cast<int64_t>(index) * Type::kBlockBytes;
  Squares squares;
  if (d >= 0x1p-100f) {
    Block<Type> block;
    block.load(source, is_aligned(data, Type::kBlockBytes < 16 ? 8 : 16));
    squares = block_squares([&](int i) { return block.weight(i, scale); }, codes, 0.5f * d);
  } else {
    squares_plainly<Type>(source, scale, codes, d, &squares);
  }

  return squares;
}

// The squares of a block that has been encoded.
__device__ Squares squares_at(const Encode &encode, float global_scale, const DeviceSegment &segment, uint32_t index) {
  int64_t out = segment.first_block + index;
  uint2 codes = load8(encode.packed + out * kPackedBlock, is_aligned(encode.packed, 8));
  float scale = e4m3_value(encode.scales[out]);
  float d = encode.recipe == SPARKFP4_MODELOPT ? dequant_factor<SPARKFP4_MODELOPT>(scale, global_scale)
                                               : dequant_factor<SPARKFP4_COMPRESSED_TENSORS>(scale, global_scale);
  float own = encode.source.kind < kCodeSources ? 1.0f : source_scale(encode.source, segment.scales, index);
  switch (encode.source.kind) {
    case SPARKFP4_BF16:
      return squares_of<Bf16>(segment.data, index, own, codes, d);
    case SPARKFP4_F16:
      return squares_of<F16>(segment.data, index, own, codes, d);
    case SPARKFP4_F32:
      return squares_of<F32>(segment.data, index, own, codes, d);
    case E4m3::kSource:
      return squares_of<E4m3>(segment.data, index, own, codes, d);
    case Int4::kSource:
      return squares_of<Int4>(segment.data, index, own, codes, d);
    default:
      return squares_of<E2m1>(segment.data, index, own, codes, d);
  }
}

// The exponent of the lowest bit of a positive double.
__device__ int lowest_bit(double x) {
  uint64_t bits = __double_as_longlong(x);
  uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  return static_cast<int>(bits >> 52) - 1075 + __ffsll(static_cast<long long>(mantissa)) - 1;
}

// Whether no addition of the segment's blocks to the lane can have rounded, in whatever order.
__device__ bool is_exact(double before, double added, uint32_t smallest) {
  if (added == 0) {
    return true;
  }

  int exponent = static_cast<int>((0u - smallest) >> 23);
  int unit = (exponent == 0 ? 1 : exponent) - 150;
  unit = before == 0 ? unit : min(unit, lowest_bit(before));
  double limit = __longlong_as_double(static_cast<long long>(unit + 53 + 1023) << 52);
  return before + added < limit;
}

// Sums of the segment that is number'd as the batch's first-th, all pieces of which are in the batch.
__device__ void conclude_sums(const Batch &batch, const Encode &encode, float global_scale, int first,
                              bool in_order, sparkfp4_error_sums *sums) {
  __shared__ float squares[2][2][kWorkers];
  __shared__ double totals[2][kLanes];
  int number = batch.segments[first].number;
  SegmentSums *state = &encode.workspace->sums[number];
  int which = threadIdx.x / kLanes % 2;
  int lane = threadIdx.x % kLanes;
  double sum = state->lanes[which][lane];
  double added = state->added[which][lane];
  if (!__syncthreads_or(in_order || !is_exact(sum, added, state->smallest[which]))) {
    sum += added;
  } else {
    for (int i = first; i < batch.count && batch.segments[i].number == number; i++) {
      const DeviceSegment &segment = batch.segments[i];
      int64_t blocks = segment.elements / kBlock;
      // The first warp adds, in order, what the others made in the turn before.
      int turn = 0;
      for (int64_t start = 0; start < blocks + kWorkers; start += kWorkers, turn ^= 1) {
        int64_t mine = start + threadIdx.x - 32;
        if (threadIdx.x >= 32) {
          Squares own = {0, 0};
          if (mine < blocks) {
            own = squares_at(encode, global_scale, segment, static_cast<uint32_t>(mine));
          }

          squares[turn][0][threadIdx.x - 32] = own.weight;
          squares[turn][1][threadIdx.x - 32] = own.error;
        } else if (start > 0) {
#pragma unroll 8
          for (int j = lane; j < kWorkers; j += kLanes) {
            sum += static_cast<double>(squares[turn ^ 1][which][j]);
          }
        }

        __syncthreads();
      }
    }
  }

  if (threadIdx.x < 2 * kLanes) {
    state->lanes[which][lane] = sum;
    state->added[which][lane] = 0;
    totals[which][lane] = sum;
  }

  __syncthreads();
  if (threadIdx.x < 2) {
    state->smallest[threadIdx.x] = 0;
    double total = sum_tree(totals[threadIdx.x]);
    (threadIdx.x == 0 ? sums[number].squares : sums[number].squared_errors) = total;
  }
}

// Of E8M0 scales; those of a cast are also held against kmax.
__device__ void find_scale(const Batch &batch, const Conclusion &conclusion, uint32_t most) {
  bool of_cast = conclusion.kind == Conclusion::kCast;
  for (int i = 0; i < batch.count; i++) {
    const DeviceSegment &segment = batch.segments[i];
    const unsigned char *scales = of_cast ? segment.scales : segment.data;
    int64_t count = of_cast ? segment.elements / 32 : segment.elements;
    int64_t index = first_wrong(count, [&](int64_t j) { return scales[j] > kLargestScale; });
    int64_t above = of_cast ? first_wrong(count, [&](int64_t j) { return scales[j] > most; }) : index;
    if (above < count && (index == count || above / kCastStrip < index / kCastStrip)) {
      if (threadIdx.x == 0) {
        conclusion.outcome->status = SPARKFP4_CUDA_INVALID;
      }

      return;
    }

    if (index < count) {
      float value = __uint_as_float(scales[index] == 255 ? 0x7fc00000u : 0x7f800000u);
      int64_t first = of_cast ? 0 : 31 * segment.first_element;
      return refuse(conclusion.outcome, segment, first + 32 * index, value);
    }
  }
}

__device__ void find_dequantized(const Batch &batch, const Conclusion &conclusion) {
  const DeviceSegment &segment = batch.segments[0];
  const Source &source = conclusion.encode.source;
  int64_t row_bytes = source.kind == E4m3::kSource   ? conclusion.row_elements
                      : source.kind == Int4::kSource ? (conclusion.row_elements + 7) / 8 * 4
                                                     : (conclusion.row_elements + 1) / 2;
  auto element = [&](int64_t index) {
    int64_t row = index / conclusion.row_elements;
    int64_t column = index % conclusion.row_elements;
    // row_blocks.divisor columns share a scale.
    int64_t scale_row = source.block_rows.divisor == 0 ? 0 : row / source.block_rows.divisor;
    int64_t scale_index = scale_row * source.row_scales + column / source.row_blocks.divisor;
    Source plain = source;
    plain.row_blocks = {0, 0, 32};
    int bytes = source.scale_type == SPARKFP4_SCALE_F32 ? 4 : source.scale_type == SPARKFP4_SCALE_E8M0 ? 1 : 2;
    float scale = source_scale(plain, segment.scales + scale_index * bytes, 0);
    const unsigned char *codes = segment.data + row * row_bytes;
    float code = source.kind == E4m3::kSource   ? code_value<E4m3>(codes, column)
                 : source.kind == Int4::kSource ? code_value<Int4>(codes, column)
                                                : code_value<E2m1>(codes, column);
    return code * scale;
  };
  int64_t index = first_wrong(segment.elements, [&](int64_t j) {
    return (__float_as_uint(element(j)) & F32::kMagnitude) >= kRoundsToInfinity;
  });
  if (index < segment.elements) {
    refuse(conclusion.outcome, segment, index, element(index));
  }
}

__global__ void __launch_bounds__(kConcludeThreads) conclude_kernel(const __grid_constant__ Batch batch,
                                                                    const __grid_constant__ Conclusion conclusion) {
  wait_for_earlier_launches();
  const Encode &encode = conclusion.encode;
  Workspace *workspace = encode.workspace;
  bool of_slots = encode.of_unit || conclusion.kind == Conclusion::kAmax;
  uint32_t largest = of_slots ? largest_of_unit(workspace) : workspace->largest;
  bool of_scales = conclusion.kind == Conclusion::kCast || conclusion.kind == Conclusion::kExponent;
  uint32_t most = conclusion.kind == Conclusion::kCast       ? conclusion.kmax + 127
                  : conclusion.kind == Conclusion::kExponent ? kLargestScale
                  : conclusion.kind == Conclusion::kDequantize
                      ? kRoundsToInfinity - 1
                      : infinity_bits(encode.source) - 1;
  bool wrong = largest > most;
  float amax = of_scales ? 0 : largest_value(encode.source, largest);
  float global_scale = wrong ? encode.global_scale : scale_of(encode, amax);

  if (blockIdx.x == 0) {
    sparkfp4_cuda_outcome *outcome = conclusion.outcome;
    if (threadIdx.x == 0) {
      outcome->amax = amax;
      outcome->global_scale = global_scale;
      outcome->exponent = static_cast<int32_t>(largest) - 127;
      outcome->requantized = static_cast<int64_t>(workspace->requantized);
    }

    if (wrong && outcome->status == SPARKFP4_CUDA_OK) {
      __syncthreads();
      if (of_scales) {
        find_scale(batch, conclusion, most);
      } else if (conclusion.kind == Conclusion::kDequantize) {
        find_dequantized(batch, conclusion);
      } else {
        find_element(batch, encode.source, conclusion.outcome);
      }
    }
  }

  int first = blockIdx.x;
  if (conclusion.sums != nullptr && !wrong &&
      (first == 0 || batch.segments[first - 1].number != batch.segments[first].number)) {
    conclude_sums(batch, encode, global_scale, first, conclusion.in_order, conclusion.sums);
  }
}

}  // namespace

cudaError_t launch_conclude(const Batch &batch, const Conclusion &conclusion, cudaStream_t stream) {
  Conclusion with_segments = conclusion;
  if (batch.count == 0) {
    with_segments.sums = nullptr;
  }

  // Without sums a small block, which finds room while the kernel before it ends.
  bool sums = with_segments.sums != nullptr;
  return launch_after(conclude_kernel, sums ? batch.count : 1, sums ? kConcludeThreads : kThreads, stream, batch,
                      with_segments);
}

}  // namespace sparkfp4::cuda
