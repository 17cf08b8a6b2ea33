// The C interface for the cast of MXFP4: codes are copied and scales looked up, but for the few blocks out of range.
#include "segments.h"

namespace sparkfp4 {
namespace {

constexpr int kSourceBlock = 32;
constexpr int kSourceBytes = kSourceBlock / 2;
constexpr int kBias = 127;
constexpr int kNan = 255;
constexpr int kLargestScale = 124 + kBias;
constexpr int kTop = 8;          // kmax's exponent in units of the global scale
constexpr int kExactBelow = 17;  // 2^-9 to 2^8 are E4M3's powers of two
constexpr int kMinExponent = -126 + kTop;

// Source blocks that are cast at once, whose codes stay in the first-level cache for the sums.
constexpr int kStrip = 256;
static_assert(2 * kStrip % kLanes == 0, "a strip begins at lane 0");

int64_t first_above(const unsigned char *scales, int64_t count, int limit) {
  int64_t index = 0;
  while (index < count && scales[index] <= limit) {
    index++;
  }

  return index;
}

uint32_t largest_byte(const unsigned char *bytes, int64_t count) {
  unsigned char largest = 0;
  for (int64_t i = 0; i < count; i++) {
    largest = bytes[i] > largest ? bytes[i] : largest;
  }

  return largest;
}

sparkfp4_status refuse_scale(const unsigned char *scales, int64_t index, int64_t segment, int64_t first_block,
                             sparkfp4_position *non_finite) {
  float value = scales[index] == kNan ? __builtin_nanf("") : __builtin_inff();
  *non_finite = {segment, (first_block + index) * kSourceBlock, value};
  return SPARKFP4_NON_FINITE;
}

struct Cast {
  const Kernel *kernel;
  sparkfp4_recipe recipe;
  int kmax;
  float global_scale;
  uint16_t pairs[256];  // the two E4M3 bytes of a source scale; 0, no scale of ours, where it is out of range
  int64_t requantized;

  Cast(const Kernel *kernel, sparkfp4_recipe recipe, int kmax)
      : kernel(kernel), recipe(recipe), kmax(kmax), pairs(), requantized(0) {
    int m = kmax - kTop;
    global_scale = bits_as<float>(static_cast<uint32_t>(kBias + (recipe == SPARKFP4_MODELOPT ? m : -m)) << 23);
    for (int below = 0; below <= kExactBelow; below++) {
      int scale = kmax - below + kBias;
      if (scale > 0) {
        float value = bits_as<float>(static_cast<uint32_t>(kBias + kTop - below) << 23);
        pairs[scale] = static_cast<uint16_t>(e4m3_byte(value) * 0x0101);
      }
    }
  }

  // One source block that is not all copied, or whose squares may round; lane is that of its first half.
  void block(const unsigned char *codes, int scale, unsigned char *packed, unsigned char *scales, ErrorLanes *sums,
             int lane) {
    ErrorLanes own = {};
    if (scale == 0) {
      std::memset(packed, 0, kSourceBytes);
      std::memset(scales, recipe == SPARKFP4_MODELOPT ? 0x38 : 0x20, 2);
      return;
    }

    if (pairs[scale] == 0) {
      float value = bits_as<float>(static_cast<uint32_t>(scale) << 23);
      float block_scales[2] = {value, value};
      EncodeTask task = {};
      task.source = codes;
      task.blocks = 2;
      task.global_scale = global_scale;
      task.block_scales = block_scales;
      task.packed = packed;
      task.scales = scales;
      task.sums = sums == nullptr ? nullptr : &own;
      kScalarKernel.encode[recipe][E2m1::kSource](task);
      requantized += 2;
    } else if (sums != nullptr) {
      unsigned char byte = static_cast<unsigned char>(scale);
      kScalarKernel.squares(codes, &byte, 1, own.squares);
    }

    for (int i = 0; sums != nullptr && i < 2; i++) {
      sums->squares[lane + i] += own.squares[i];
      sums->errors[lane + i] += own.errors[i];
    }
  }

  // Up to kStrip blocks, whose scales have been checked.
  void strip(const unsigned char *codes, const unsigned char *source_scales, int64_t count, unsigned char *packed,
             unsigned char *scales, ErrorLanes *sums) {
    std::memcpy(packed, codes, static_cast<size_t>(count) * kSourceBytes);
    if (sums != nullptr) {
      // For the next strip, while this one's squares are summed.
      for (int64_t i = 0; i < count * kSourceBytes; i += 64) {
        __builtin_prefetch(codes + count * kSourceBytes + i);
        __builtin_prefetch(packed + count * kSourceBytes + i, 1);
      }
    }

    bool copied = true;
    for (int64_t i = 0; i < count; i++) {
      uint16_t pair = pairs[source_scales[i]];
      std::memcpy(scales + 2 * i, &pair, sizeof pair);
      copied &= pair != 0;
    }

    if (sums != nullptr && copied) {
      for (int64_t i = 0; i < count; i++) {
        int k = source_scales[i] - kBias;
        copied &= k >= kMinSquareExponent && k <= kMaxSquareExponent;
      }
    }

    if (!copied) {
      for (int64_t i = 0; i < count; i++) {
        block(codes + i * kSourceBytes, source_scales[i], packed + i * kSourceBytes, scales + 2 * i, sums,
              static_cast<int>(2 * i % kLanes));
      }
    } else if (sums != nullptr) {
      // Errors are zero: the product of a block's scale and the global one is its source scale.
      kernel->squares(codes, source_scales, count, sums->squares);
    }
  }
};

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

sparkfp4_status sparkfp4_largest_exponent(const sparkfp4_segment *scales, int64_t segment_count, int32_t *exponent,
                                          sparkfp4_position *non_finite) {
  if (segment_count < 0 || (segment_count > 0 && scales == nullptr) || exponent == nullptr || non_finite == nullptr) {
    return SPARKFP4_INVALID;
  }

  uint32_t largest = 0;
  for (int64_t i = 0; i < segment_count; i++) {
    const unsigned char *bytes = static_cast<const unsigned char *>(scales[i].data);
    if (scales[i].count < 0 || (scales[i].count > 0 && bytes == nullptr)) {
      return SPARKFP4_INVALID;
    }

    uint32_t of_segment = largest_byte(bytes, scales[i].count);
    if (of_segment > kLargestScale) {
      return refuse_scale(bytes, first_above(bytes, scales[i].count, kLargestScale), i, 0, non_finite);
    }

    largest = of_segment > largest ? of_segment : largest;
  }

  *exponent = static_cast<int32_t>(largest) - kBias;
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_cast_mxfp4(sparkfp4_tier tier, sparkfp4_recipe recipe,
                                    const sparkfp4_quantized_segment *segments, int64_t segment_count, int64_t cols,
                                    int32_t kmax, void *packed, void *scales, sparkfp4_error_sums *sums,
                                    int64_t *requantized, sparkfp4_position *non_finite) {
  int64_t elements = valid(recipe) && cols % kSourceBlock == 0 ? total_elements(segments, segment_count, cols) : -1;
  if (elements < 0 || kmax < kMinExponent || kmax > kLargestScale - kBias || requantized == nullptr ||
      non_finite == nullptr || (elements > 0 && (packed == nullptr || scales == nullptr))) {
    return SPARKFP4_INVALID;
  }

  const Kernel *chosen = kernel(tier);
  if (chosen == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  Cast cast(chosen, recipe, kmax);
  unsigned char *packed_next = static_cast<unsigned char *>(packed);
  unsigned char *scales_next = static_cast<unsigned char *>(scales);
  for (int64_t i = 0; i < segment_count; i++) {
    const unsigned char *codes = static_cast<const unsigned char *>(segments[i].codes);
    const unsigned char *source_scales = static_cast<const unsigned char *>(segments[i].scales);
    int64_t blocks = segments[i].rows * (cols / kSourceBlock);
    ErrorLanes lanes = {};
    for (int64_t first = 0; first < blocks; first += kStrip) {
      int64_t count = blocks - first < kStrip ? blocks - first : kStrip;
      uint32_t largest = largest_byte(source_scales + first, count);
      if (largest > kLargestScale) {
        return refuse_scale(source_scales + first, first_above(source_scales + first, count, kLargestScale), i, first,
                            non_finite);
      }

      if (static_cast<int>(largest) - kBias > kmax) {
        return SPARKFP4_INVALID;
      }

      cast.strip(codes + first * kSourceBytes, source_scales + first, count, packed_next, scales_next,
                 sums == nullptr ? nullptr : &lanes);
      packed_next += count * kSourceBytes;
      scales_next += 2 * count;
    }

    store_sums(lanes, sums, i);
  }

  *requantized = cast.requantized;
  return SPARKFP4_OK;
}
