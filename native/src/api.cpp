// The C interface: checks arguments, chooses the tier, walks the segments.
#include <sys/mman.h>
#include <unistd.h>

#include "hessian_bounds.h"
#include "segments.h"

#ifndef SPARKFP4_VERSION
#error "SPARKFP4_VERSION is not defined"
#endif

namespace sparkfp4 {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sources are little-endian and read as they are");

const Kernel *kernel(sparkfp4_tier tier) {
  switch (tier) {
    case SPARKFP4_SCALAR:
      return &kScalarKernel;
#ifdef SPARKFP4_X86
    case SPARKFP4_AVX2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")
                 ? &kAvx2Kernel
                 : nullptr;
    case SPARKFP4_AVX512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")
                 ? &kAvx512Kernel
                 : nullptr;
#endif
    default:
      return nullptr;
  }
}

namespace {

uint32_t infinity(sparkfp4_dtype dtype) {
  return dtype == SPARKFP4_BF16 ? Bf16::kInfinity : dtype == SPARKFP4_F16 ? F16::kInfinity : F32::kInfinity;
}

float element_value(sparkfp4_dtype dtype, uint32_t bits) {
  switch (dtype) {
    case SPARKFP4_BF16:
      return widen<Bf16>(static_cast<uint16_t>(bits));
    case SPARKFP4_F16:
      return widen<F16>(static_cast<uint16_t>(bits));
    default:
      return widen<F32>(bits);
  }
}

uint32_t element_bits(sparkfp4_dtype dtype, const void *data, int64_t index) {
  const unsigned char *source = static_cast<const unsigned char *>(data);
  return dtype == SPARKFP4_F32 ? load_bits<F32>(source, index) : load_bits<Bf16>(source, index);
}

// Only once an element is known to be there: the passes themselves look at maxima alone.
sparkfp4_status find_non_finite(const Kernel &kernel, sparkfp4_dtype dtype, int64_t segment,
                                const unsigned char *source, int64_t elements, sparkfp4_position *position) {
  constexpr int64_t kChunk = 4096;
  const AmaxFunction amax = kernel.amax[dtype];
  int64_t bytes = dtype == SPARKFP4_F32 ? 4 : 2;
  int64_t index = 0;
  while (index + kChunk <= elements && amax(source + index * bytes, kChunk) < infinity(dtype)) {
    index += kChunk;
  }

  while (amax(source + index * bytes, 1) < infinity(dtype)) {
    index++;
  }

  position->segment = segment;
  position->index = index;
  position->value = element_value(dtype, element_bits(dtype, source, index));
  return SPARKFP4_NON_FINITE;
}

bool valid(sparkfp4_dtype dtype, const sparkfp4_segment *segments, int64_t segment_count) {
  if (dtype < SPARKFP4_BF16 || dtype > SPARKFP4_F32 || segment_count < 0 ||
      (segment_count > 0 && segments == nullptr)) {
    return false;
  }

  for (int64_t i = 0; i < segment_count; i++) {
    if (segments[i].count < 0 || (segments[i].count > 0 && segments[i].data == nullptr)) {
      return false;
    }
  }

  return true;
}

void advise(const void *address, size_t bytes, int advice) {
  uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t start = reinterpret_cast<uintptr_t>(address) / page * page;
  uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  if (end > start) {
    madvise(reinterpret_cast<void *>(start), end - start, advice);
  }
}

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

const char *sparkfp4_version(void) {
  return SPARKFP4_VERSION;
}

int sparkfp4_has_tier(sparkfp4_tier tier) {
  return kernel(tier) != nullptr;
}

sparkfp4_tier sparkfp4_best_tier(void) {
  return kernel(SPARKFP4_AVX512) != nullptr ? SPARKFP4_AVX512
         : kernel(SPARKFP4_AVX2) != nullptr ? SPARKFP4_AVX2
                                            : SPARKFP4_SCALAR;
}

sparkfp4_status sparkfp4_amax(sparkfp4_tier tier, sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                              int64_t segment_count, float *amax, sparkfp4_position *non_finite) {
  if (!valid(dtype, segments, segment_count) || amax == nullptr || non_finite == nullptr) {
    return SPARKFP4_INVALID;
  }

  const Kernel *chosen = kernel(tier);
  if (chosen == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  uint32_t largest = 0;
  for (int64_t i = 0; i < segment_count; i++) {
    const unsigned char *source = static_cast<const unsigned char *>(segments[i].data);
    uint32_t magnitude = chosen->amax[dtype](source, segments[i].count);
    if (magnitude >= infinity(dtype)) {
      return find_non_finite(*chosen, dtype, i, source, segments[i].count, non_finite);
    }

    largest = magnitude > largest ? magnitude : largest;
  }

  *amax = element_value(dtype, largest);
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_encode(sparkfp4_tier tier, sparkfp4_recipe recipe, sparkfp4_search search,
                                const float *importance, sparkfp4_dtype dtype, const sparkfp4_segment *segments,
                                int64_t segment_count, int64_t cols, float global_scale, void *packed, void *scales,
                                sparkfp4_error_sums *sums, sparkfp4_position *non_finite) {
  if (!valid(dtype, segments, segment_count) || !valid(recipe) || !valid(search, importance) ||
      !valid_scale(global_scale) || non_finite == nullptr) {
    return SPARKFP4_INVALID;
  }

  int64_t elements = total_elements(segments, segment_count, cols);
  if (elements < 0 || (elements > 0 && (packed == nullptr || scales == nullptr))) {
    return SPARKFP4_INVALID;
  }

  const Kernel *chosen = kernel(tier);
  if (chosen == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  HessianBlocks hessians(search, elements > 0 ? cols / kBlock : 0);
  unsigned char *packed_next = static_cast<unsigned char *>(packed);
  unsigned char *scales_next = static_cast<unsigned char *>(scales);
  for (int64_t i = 0; i < segment_count; i++) {
    const unsigned char *source = static_cast<const unsigned char *>(segments[i].data);
    int64_t blocks = segments[i].count * (cols / kBlock);
    ErrorLanes lanes = {};
    EncodeTask task = {};
    task.source = source;
    task.blocks = blocks;
    task.global_scale = global_scale;
    task.search = search;
    task.importance = importance;
    task.row_blocks = cols / kBlock;
    task.hessians = hessians.get();
    task.packed = packed_next;
    task.scales = scales_next;
    task.sums = sums == nullptr ? nullptr : &lanes;
    if (chosen->encode[recipe][dtype](task) >= infinity(dtype)) {
      return find_non_finite(*chosen, dtype, i, source, blocks * kBlock, non_finite);
    }

    store_sums(lanes, sums, i);
    packed_next += blocks * kPackedBlock;
    scales_next += blocks;
  }

  return SPARKFP4_OK;
}

void sparkfp4_prefetch(const void *address, size_t bytes) {
  advise(address, bytes, MADV_WILLNEED);
}

void sparkfp4_let_go(const void *address, size_t bytes) {
  advise(address, bytes, MADV_DONTNEED);
}
