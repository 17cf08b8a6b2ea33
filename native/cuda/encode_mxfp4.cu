// The encode of MXFP4 by round to nearest and its largest |w|: a thread a source block of 32, which becomes two.
//
// A block's largest magnitude, one of eight, and the power of two that is its source scale are all that its scale and
// codes depend on; and nothing rounds otherwise when both scales change by powers of two. So a thread block finds the
// codes of the seven magnitudes under each largest one once, and looks them up. Blocks whose scale in E4M3 is
// subnormal, or more than E4M3 has, are encoded one by one.
#include "encode.cuh"
#include "encode_codes.h"
#include "fetch.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int kSourceBytes = 16;
constexpr int kBias = 127;
constexpr int kMagnitudes = 8;
constexpr uint32_t kLeastByte = 8;    // the least scale that is no subnormal number
constexpr uint32_t kMostByte = 126;
constexpr int kSourceRange = 60;      // of source scales with ordinary d
constexpr uint32_t kNoScale = 0x100;  // more than a byte

// |w| as binary32 has no bits below these but for zeros, unless it is subnormal.
constexpr int kFreeBits = 22;

// What follows from a block's largest magnitude. found and the byte of the source scale times step are the byte of the
// block's scale, in the low half, and the largest |w| without its free bits, in the high one.
struct alignas(16) Entry {
  uint32_t codes[2];  // of the eight magnitudes, a byte each
  uint32_t found;
  uint32_t step;
};

constexpr uint32_t kStep = (2u << 16) + 8;  // a power of two more: of |w|, and of the scale

// Finds the code of a magnitude under a largest one, and what else follows from that; the source scale is one for which
// all block scales are well within E4M3's normal range.
__device__ __forceinline__ void find_code(const Rule &rule, uint32_t zero_byte, int largest, int magnitude,
                                          Entry *entry) {
  constexpr int kUp = 3;
  float global = rule.modelopt ? rule.global_scale : rule.inverse_scale;
  uint32_t source_byte = (__float_as_uint(global) >> 23) + kUp;
  float source_scale = __uint_as_float(source_byte << 23);
  float amax = nibble_value<E2m1>(largest);
  Scale scale = rule.block<false>(amax * source_scale);
  uint32_t code = e2m1_index(nibble_value<E2m1>(magnitude) * source_scale / rule.factor(scale.value));
  reinterpret_cast<unsigned char *>(entry->codes)[magnitude] = static_cast<unsigned char>(largest == 0 ? 0 : code);
  if (magnitude == 0) {
    entry->step = largest == 0 ? 0 : kStep;
    uint32_t of_one = ((__float_as_uint(amax) >> kFreeBits) - 2 * kBias) << 16;
    entry->found = largest == 0 ? zero_byte : of_one + scale.byte - 8 * source_byte;
  }
}

// The tiles of a segment, one of which is worked on or fetched.
struct Run {
  const unsigned char *data;
  const unsigned char *scales;
  int64_t first_block;    // in the outputs
  uint32_t first;
  uint32_t tiles;
  uint32_t count;         // of source blocks
  int segment;

  __device__ __forceinline__ void enter(const Batch &batch, uint32_t tile) {
    segment = segment_of(batch, tile, segment);
    const DeviceSegment &of = batch.segments[segment];
    data = of.data;
    scales = of.scales;
    first_block = of.first_block;
    first = of.first_tile;
    count = of.blocks / 2;
    tiles = (count + kThreads - 1) / kThreads;
  }
};

// A thread's source block of a tile.
struct SourceBlock {
  uint4 codes;
  uint32_t scale;         // kNoScale: there is none
  int segment;
  int64_t out;            // its first block in the outputs

  __device__ __forceinline__ float scale_value() const {
    return __uint_as_float(scale == 0 ? 1u << 22 : scale == 255 ? 0x7fc00000u : scale << 23);
  }
};

template <bool kAligned>
__device__ __forceinline__ SourceBlock load_block(const Batch &batch, uint32_t tile, Run *run) {
  if (tile - run->first >= run->tiles) {
    run->enter(batch, tile);
  }

  SourceBlock block;
  uint32_t index = (tile - run->first) * kThreads + threadIdx.x;
  block.segment = run->segment;
  block.scale = kNoScale;
  if (index < run->count) {
    block.codes = load16(run->data + static_cast<int64_t>(index) * kSourceBytes,
                         kAligned || is_aligned(run->data, kSourceBytes));
    block.scale = run->scales[index];
    block.out = run->first_block + 2 * static_cast<int64_t>(index);
  }

  return block;
}

// Entry of a magnitude that is in bits 12 to 14 of the word, from 8 of them that begin at a multiple of their size.
__device__ __forceinline__ Entry entry_at(uint32_t entries, uint32_t word) {
  Entry entry;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(entry.codes[0]), "=r"(entry.codes[1]), "=r"(entry.found), "=r"(entry.step)
               : "r"((word >> 8 & 0x70) | entries)
               : "memory");
  return entry;
}

// Whether both halves are bytes of scales that entries hold for.
__device__ __forceinline__ bool are_served(uint32_t bytes) {
  constexpr uint32_t kBoth = 0x00010001;
  constexpr uint32_t kSevenBits = 0x7f * kBoth;
  return (((bytes - kLeastByte * kBoth) | (bytes + (127 - kMostByte) * kBoth)) & ~kSevenBits) == 0;
}

// kAligned: all that is read and written is, as memory from CUDA is.
template <bool kSums, bool kAligned>
__global__ void __launch_bounds__(kThreads, kSums ? 3 : 5)
    encode_mxfp4_kernel(const __grid_constant__ Batch batch, const __grid_constant__ Encode encode) {
  __shared__ alignas(kMagnitudes * sizeof(Entry)) Entry entries[kMagnitudes];
  uint32_t of_entries = shared_address(entries);
  asm("" : "+r"(of_entries));  // for the compiler would find it anew for each tile
  admit_next_launch();
  // A thread block takes so many tiles, each so far from the one before.
  uint32_t left = blockIdx.x < batch.tiles ? (batch.tiles - 1 - blockIdx.x) / gridDim.x + 1 : 0;
  uint32_t step = encode.backwards ? 0 - gridDim.x : gridDim.x;
  uint32_t tile = encode.backwards ? batch.tiles - 1 - blockIdx.x : blockIdx.x;
  Run run = {};
  SourceBlock next;
  if (left > 0) {
    next = load_block<kAligned>(batch, tile, &run);
  }

  Rule rule;
  const ScaleRule *made = load_rule(batch, encode, &rule);
  if (made == nullptr) {
    return;
  }

  if (threadIdx.x < kMagnitudes * kMagnitudes) {
    uint32_t largest = threadIdx.x / kMagnitudes;
    find_code(rule, zero_scale(encode.recipe), largest, threadIdx.x % kMagnitudes, &entries[largest]);
  }

  __syncthreads();
  bool serves = rule.ordinary && !rule.zero;
  uint32_t largest = 0;
  uint32_t largest_found = 0;
  PairSums sums;
  int summed = -1;
  // Two turns, so that what has been fetched need not move to other registers.
#pragma unroll 2
  for (; left > 0; left--) {
    // While one is encoded, the next is on its way.
    const SourceBlock source = next;
    SourceBlock after;
    if (left > 1) {
      tile += step;
      after = load_block<kAligned>(batch, tile, &run);
    }

    next = after;
    if constexpr (kSums) {
      int number = batch.segments[source.segment].number;
      if (summed != number) {
        if (summed >= 0) {
          sums.flush(&encode.workspace->sums[summed]);
        }

        summed = number;
      }
    }

    if (source.scale == kNoScale) {
      continue;
    }

    const Block<E2m1> blocks[2] = {{source.codes.x, source.codes.y}, {source.codes.z, source.codes.w}};
    uint32_t of_first = blocks[0].largest_of_codes();
    uint32_t of_second = blocks[1].largest_of_codes();
    uint32_t of_both = max_halves(permute(of_first, of_second, 0x5410), permute(of_first, of_second, 0x7632));
    const Entry first = entry_at(of_entries, of_both);
    const Entry second = entry_at(of_entries, of_both >> 16);
    uint32_t codes[4] = {blocks[0].look_up(0, first.codes), blocks[0].look_up(1, first.codes),
                         blocks[1].look_up(0, second.codes), blocks[1].look_up(1, second.codes)};
    uint32_t found[2] = {first.found + first.step * source.scale, second.found + second.step * source.scale};
    uint32_t bytes = permute(found[0], found[1], 0x5410);
    if (serves && source.scale - (kBias - kSourceRange) <= 2 * kSourceRange && are_served(bytes)) {
      largest_found = max(largest_found, max(found[0], found[1]));
    } else {
      const DeviceSegment &segment = batch.segments[source.segment];
      const unsigned char *from = segment.data + (source.out - segment.first_block) * kPackedBlock;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        Encoded otherwise;
        largest = max(largest, encode_apart<E2m1>(from + i * kPackedBlock, source.scale_value(), *made, &otherwise));
        codes[2 * i] = otherwise.codes.x;
        codes[2 * i + 1] = otherwise.codes.y;
        bytes = permute(bytes, otherwise.byte, i == 0 ? 0x3214 : 0x3410);
      }
    }

    unsigned char *packed = encode.packed + source.out * kPackedBlock;
    if (kAligned || is_aligned(encode.packed, 16)) {
      *reinterpret_cast<uint4 *>(packed) = make_uint4(codes[0], codes[1], codes[2], codes[3]);
    } else {
      store8(packed, make_uint2(codes[0], codes[1]), false);
      store8(packed + kPackedBlock, make_uint2(codes[2], codes[3]), false);
    }

    unsigned char *scales = encode.scales + source.out;
    if (kAligned || is_aligned(encode.scales, 2)) {
      *reinterpret_cast<uint16_t *>(scales) = static_cast<uint16_t>(permute(bytes, 0, 0x4420));
    } else {
      scales[0] = static_cast<unsigned char>(bytes);
      scales[1] = static_cast<unsigned char>(bytes >> 16);
    }

    if (kSums && !rule.zero) {
      const DeviceSegment &segment = batch.segments[source.segment];
      const unsigned char *from = segment.data + (source.out - segment.first_block) * kPackedBlock;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        uint32_t byte = bytes >> 16 * i & 0xff;
        Encoded encoded = {make_uint2(codes[2 * i], codes[2 * i + 1]), byte, rule.factor_plainly(e4m3_value(byte))};
        add_squares(blocks[i], from + i * kPackedBlock, source.scale_value(), encoded, &sums.sums[i]);
      }
    }
  }

  if constexpr (kSums) {
    if (summed >= 0) {
      sums.flush(&encode.workspace->sums[summed]);
    }
  }

  conclude_last(batch, encode, max(largest, largest_found >> 16 << kFreeBits));
}

// Whether all that a batch reads and writes is at the alignment of memory from CUDA.
bool are_aligned(const Batch &batch, const Encode &encode) {
  bool aligned = is_aligned(encode.packed, kSourceBytes) && is_aligned(encode.scales, 2);
  for (int i = 0; i < batch.count; i++) {
    aligned = aligned && is_aligned(batch.segments[i].data, kSourceBytes);
  }

  return aligned;
}

template <bool kSums>
cudaError_t launch(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  auto kernel = are_aligned(batch, encode) ? encode_mxfp4_kernel<kSums, true> : encode_mxfp4_kernel<kSums, false>;
  return launch_tiles(kernel, batch, encode, stream, kSums ? kWaves : 1);
}

}  // namespace

cudaError_t launch_encode_mxfp4(const Batch &batch, const Encode &encode, cudaStream_t stream) {
  return encode.with_sums ? launch<true>(batch, encode, stream) : launch<false>(batch, encode, stream);
}

}  // namespace sparkfp4::cuda
