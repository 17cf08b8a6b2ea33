// The encode of MXFP4 by round to nearest and its largest |w|: a thread a source block of 32, which becomes two.
//
// A block's largest magnitude, one of eight, and the power of two that is its source scale are all that its scale and
// codes depend on; and nothing rounds otherwise when both scales change by powers of two. So a thread block finds the
// codes of the seven magnitudes under each largest one once, and looks them up. Blocks whose scale in E4M3 is
// subnormal, or more than E4M3 has, are encoded one by one.
#include "encode.cuh"
#include "encode_codes.h"

namespace sparkfp4::cuda {
namespace {

constexpr int kSourceBytes = 16;
constexpr int kBias = 127;
constexpr int kMagnitudes = 8;
constexpr uint32_t kLeastByte = 8;    // the least scale that is no subnormal number
constexpr uint32_t kMostByte = 126;
constexpr int kSourceRange = 60;      // of source scales with ordinary d

// What follows from a block's largest magnitude.
struct Entry {
  uint32_t codes[2];  // of the eight magnitudes, a byte each
  int32_t byte;       // of the block's scale, less eight times the byte of its source's
  float magnitude;
};

static_assert(sizeof(Entry) == 16, "one load");

// Under a source scale for which all block scales are well within E4M3's normal range.
__device__ __forceinline__ Entry find_entry(const Rule &rule, int largest) {
  constexpr int kUp = 3;
  float global = rule.modelopt ? rule.global_scale : rule.inverse_scale;
  uint32_t source_byte = (__float_as_uint(global) >> 23) + kUp;
  float source_scale = __uint_as_float(source_byte << 23);
  Entry entry = {{0, 0}, 0, e2m1_magnitude(largest)};
  Scale scale = rule.block<false>(entry.magnitude * source_scale);
  float d = rule.factor(scale.value);
  entry.byte = static_cast<int32_t>(scale.byte) - 8 * static_cast<int32_t>(source_byte);
#pragma unroll 1
  for (int i = 0; i < kMagnitudes; i++) {
    uint32_t code = largest == 0 ? 0 : e2m1_index(e2m1_magnitude(i) * source_scale / d);
    entry.codes[i / 4] |= code << 8 * (i % 4);
  }

  return entry;
}

// A thread's source block and its scale.
struct SourceBlock {
  int segment;
  bool any;
  uint32_t index;
  uint4 codes;
  uint32_t scale;

  __device__ __forceinline__ void load(const Batch &batch, const Encode &encode, uint32_t turn, int near_segment) {
    segment = near_segment;
    any = false;
    if (turn >= batch.tiles) {
      return;
    }

    uint32_t tile = encode.backwards ? batch.tiles - 1 - turn : turn;
    segment = segment_of(batch, tile, near_segment);
    const DeviceSegment &of = batch.segments[segment];
    index = (tile - of.first_tile) * kThreads + threadIdx.x;
    any = index < of.blocks / 2;
    if (any) {
      codes = load16(of.data + static_cast<int64_t>(index) * kSourceBytes, is_aligned(of.data, kSourceBytes));
      scale = of.scales[index];
    }
  }
};

template <bool kSums>
__global__ void __launch_bounds__(kThreads, kSums ? 3 : 5)
    encode_mxfp4_kernel(const __grid_constant__ Batch batch, const __grid_constant__ Encode encode) {
  __shared__ alignas(16) Entry entries[kMagnitudes];
  admit_next_launch();
  if (!encode.of_unit) {
    wait_for_earlier_launches();
  }

  SourceBlock next;
  next.load(batch, encode, blockIdx.x, 0);
  Rule rule;
  const ScaleRule *made = load_rule(batch, encode, &rule);
  if (made == nullptr) {
    return;
  }

  if (threadIdx.x < kMagnitudes) {
    entries[threadIdx.x] = find_entry(rule, threadIdx.x);
  }

  __syncthreads();
  bool serves = rule.ordinary && !rule.zero;
  uint32_t zero_byte = zero_scale(encode.recipe);
  bool aligned_out = is_aligned(encode.packed, 16);
  bool paired_out = is_aligned(encode.scales, 2);
  uint32_t largest = 0;
  PairSums sums;
  int summed = -1;
  for (uint32_t turn = blockIdx.x; turn < batch.tiles; turn += gridDim.x) {
    // While one is encoded, the next is on its way.
    const SourceBlock source = next;
    next.load(batch, encode, turn + gridDim.x, source.segment);
    const DeviceSegment &segment = batch.segments[source.segment];
    if constexpr (kSums) {
      if (summed != segment.number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = segment.number;
      }
    }

    if (!source.any) {
      continue;
    }

    const uint32_t words[4] = {source.codes.x, source.codes.y, source.codes.z, source.codes.w};
    uint32_t codes[4];
    uint32_t bytes[2];
    float magnitude = 0;
    bool served = serves && source.scale - (kBias - kSourceRange) <= 2 * kSourceRange;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      Block<E2m1> block = {words[2 * i], words[2 * i + 1]};
      const Entry entry = entries[block.largest()];
      codes[2 * i] = block.look_up(0, entry.codes);
      codes[2 * i + 1] = block.look_up(1, entry.codes);
      int32_t byte = entry.byte + 8 * static_cast<int32_t>(source.scale);
      bytes[i] = entry.magnitude == 0 ? zero_byte : static_cast<uint32_t>(byte);
      served &= bytes[i] - kLeastByte <= kMostByte - kLeastByte;
      magnitude = fmaxf(magnitude, entry.magnitude);
    }

    float scale = __uint_as_float(source.scale << 23);
    if (served) {
      largest = max(largest, __float_as_uint(magnitude * scale));
    } else {
      scale = __uint_as_float(source.scale == 0 ? 1u << 22 : source.scale == 255 ? 0x7fc00000u : source.scale << 23);
      const unsigned char *from = segment.data + static_cast<int64_t>(source.index) * kSourceBytes;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        Encoded otherwise;
        largest = max(largest, encode_apart<E2m1>(from + i * kPackedBlock, scale, *made, &otherwise));
        codes[2 * i] = otherwise.codes.x;
        codes[2 * i + 1] = otherwise.codes.y;
        bytes[i] = otherwise.byte;
      }
    }

    int64_t out = segment.first_block + 2 * static_cast<int64_t>(source.index);
    unsigned char *packed = encode.packed + out * kPackedBlock;
    if (aligned_out) {
      *reinterpret_cast<uint4 *>(packed) = make_uint4(codes[0], codes[1], codes[2], codes[3]);
    } else {
      store8(packed, make_uint2(codes[0], codes[1]), false);
      store8(packed + kPackedBlock, make_uint2(codes[2], codes[3]), false);
    }

    if (paired_out) {
      *reinterpret_cast<uint16_t *>(encode.scales + out) = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
    } else {
      encode.scales[out] = static_cast<unsigned char>(bytes[0]);
      encode.scales[out + 1] = static_cast<unsigned char>(bytes[1]);
    }

    if (kSums && !rule.zero) {
#pragma unroll
      for (int i = 0; i < 2; i++) {
        Block<E2m1> block = {words[2 * i], words[2 * i + 1]};
        Encoded encoded = {make_uint2(codes[2 * i], codes[2 * i + 1]), bytes[i],
                           rule.factor_plainly(e4m3_value(bytes[i]))};
        const unsigned char *from = segment.data + (2 * static_cast<int64_t>(source.index) + i) * kPackedBlock;
        add_squares(block, from, scale, encoded, &sums.sums[i]);
      }
    }
  }

  if constexpr (kSums) {
    if (summed >= 0) {
      sums.flush(&encode.workspace->sums[summed]);
    }
  }

  conclude_last(batch, encode, largest);
}

}  // namespace

cudaError_t launch_encode_mxfp4(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  auto kernel = encode.with_sums ? encode_mxfp4_kernel<true> : encode_mxfp4_kernel<false>;
  return launch_tiles(kernel, batch, encode, stream);
}

}  // namespace sparkfp4::cuda
