// The C interface for quantized sources: spreads the scales over the blocks, chunk by chunk, and walks the segments.
#include "code_tables.h"
#include "e4m3_tables.h"
#include "hessian_bounds.h"
#include "segments.h"
#include "to_bf16.h"

namespace sparkfp4 {
namespace {

// Blocks whose scales are spread at once, 4 KiB of them; whole rounds of the error sums' lanes.
constexpr int kChunk = 1024;

template <sparkfp4_scale_type kType>
float load_scale(const unsigned char *scales, int64_t index) {
  if constexpr (kType == SPARKFP4_SCALE_F32) {
    return widen<F32>(load_bits<F32>(scales, index));
  } else if constexpr (kType == SPARKFP4_SCALE_BF16) {
    return widen<Bf16>(load_bits<Bf16>(scales, index));
  } else if constexpr (kType == SPARKFP4_SCALE_F16) {
    return widen<F16>(load_bits<F16>(scales, index));
  } else {
    uint32_t exponent = scales[index];
    // 2^-127 is subnormal, and NaN has that bit, too.
    uint32_t extra = exponent == 0 || exponent == 255 ? 1u << 22 : 0;
    return bits_as<float>(exponent << 23 | extra);
  }
}

// As many whole scales as the blocks have; the index of the first is that of its scale.
template <sparkfp4_scale_type kType, int kPerScale>
void spread_whole(const unsigned char *row_scales, int64_t index, int64_t scales, float *out) {
  for (int64_t i = 0; i < scales; i++) {
    float scale = load_scale<kType>(row_scales, index + i);
    for (int j = 0; j < kPerScale; j++) {
      out[i * kPerScale + j] = scale;
    }
  }
}

// The scales of a row's blocks from first on, each repeated for the per_scale blocks that share it.
template <sparkfp4_scale_type kType>
void spread_row(const unsigned char *row_scales, int64_t per_scale, int64_t first, int64_t blocks, float *out) {
  int64_t done = 0;
  if (first % per_scale == 0 && (per_scale == 1 || per_scale == 2 || per_scale == 8)) {
    // A scale each, groups of 32, and blocks of 128.
    int64_t scales = blocks / per_scale;
    if (per_scale == 1) {
      spread_whole<kType, 1>(row_scales, first, scales, out);
    } else if (per_scale == 2) {
      spread_whole<kType, 2>(row_scales, first / 2, scales, out);
    } else {
      spread_whole<kType, 8>(row_scales, first / 8, scales, out);
    }

    done = scales * per_scale;
  }

  while (done < blocks) {
    int64_t index = (first + done) / per_scale;
    float scale = load_scale<kType>(row_scales, index);
    int64_t end = (index + 1) * per_scale - first;
    for (end = end < blocks ? end : blocks; done < end; done++) {
      out[done] = scale;
    }
  }
}

void spread_row(sparkfp4_scale_type type, const unsigned char *row_scales, int64_t per_scale, int64_t first,
                int64_t blocks, float *out) {
  switch (type) {
    case SPARKFP4_SCALE_F32:
      return spread_row<SPARKFP4_SCALE_F32>(row_scales, per_scale, first, blocks, out);
    case SPARKFP4_SCALE_BF16:
      return spread_row<SPARKFP4_SCALE_BF16>(row_scales, per_scale, first, blocks, out);
    case SPARKFP4_SCALE_F16:
      return spread_row<SPARKFP4_SCALE_F16>(row_scales, per_scale, first, blocks, out);
    default:
      return spread_row<SPARKFP4_SCALE_E8M0>(row_scales, per_scale, first, blocks, out);
  }
}

// Of one segment, whose blocks follow each other whatever its rows are.
class Scales {
 public:
  Scales(const sparkfp4_scheme &scheme, const void *scales, int64_t cols)
      : scheme_(scheme),
        scales_(static_cast<const unsigned char *>(scales)),
        row_blocks_(cols / kBlock),
        per_scale_(scheme.block_cols == 0 ? row_blocks_ : scheme.block_cols / kBlock),
        row_bytes_((row_blocks_ + per_scale_ - 1) / per_scale_ * scale_bytes(scheme.scales)) {}

  void spread(int64_t first, int64_t blocks, float *out) const {
    int64_t row = first / row_blocks_;
    int64_t in_row = first % row_blocks_;
    while (blocks > 0) {
      int64_t scale_row = scheme_.block_rows == 0 ? 0 : row / scheme_.block_rows;
      int64_t count = row_blocks_ - in_row < blocks ? row_blocks_ - in_row : blocks;
      const unsigned char *row_scales = scales_ + scale_row * row_bytes_;
      spread_row(scheme_.scales, row_scales, per_scale_, in_row, count, out);
      prefetch(row_scales, in_row + count, count);
      out += count;
      blocks -= count;
      in_row = 0;
      row++;
    }
  }

  float scale(int64_t scale_row, int64_t index) const {
    float scale;
    spread_row(scheme_.scales, scales_ + scale_row * row_bytes_, 1, index, 1, &scale);
    return scale;
  }

 private:
  // The scales of the blocks that follow, for the next chunk.
  void prefetch(const unsigned char *row_scales, int64_t next, int64_t blocks) const {
    const unsigned char *from = row_scales + next / per_scale_ * scale_bytes(scheme_.scales);
    for (int64_t j = 0; j < blocks / per_scale_ * scale_bytes(scheme_.scales); j += 64) {
      __builtin_prefetch(from + j);
    }
  }

  const sparkfp4_scheme &scheme_;
  const unsigned char *scales_;
  int64_t row_blocks_;
  int64_t per_scale_;
  int64_t row_bytes_;
};

int block_bytes(sparkfp4_codes codes) {
  return codes == SPARKFP4_E4M3 ? E4m3::kBlockBytes : E2m1::kBlockBytes;
}

float element(sparkfp4_codes codes, const unsigned char *source, int64_t index, float scale) {
  float value = codes == SPARKFP4_E4M3   ? code_value<E4m3>(source, index)
                : codes == SPARKFP4_INT4 ? code_value<Int4>(source, index)
                                         : code_value<E2m1>(source, index);
  return value * scale;
}

// Only once a chunk is known to hold such an element.
sparkfp4_status find_non_finite(sparkfp4_codes codes, const unsigned char *source, const float *block_scales,
                                int64_t segment, int64_t first_block, sparkfp4_position *position) {
  int64_t index = 0;
  float value = element(codes, source, index, block_scales[0]);
  while (__builtin_isfinite(value)) {
    index++;
    value = element(codes, source, index, block_scales[index / kBlock]);
  }

  *position = {segment, first_block * kBlock + index, value};
  return SPARKFP4_NON_FINITE;
}

// Calls work(scales, codes, first_block, blocks) for each chunk of a segment; it gives the largest magnitude.
template <typename Work>
sparkfp4_status each_chunk(const sparkfp4_scheme &scheme, const sparkfp4_quantized_segment &segment, int64_t number,
                           int64_t cols, sparkfp4_position *non_finite, Work work) {
  int64_t blocks = segment.rows * (cols / kBlock);
  if (blocks == 0) {
    return SPARKFP4_OK;
  }

  Scales scales(scheme, segment.scales, cols);
  const unsigned char *codes = static_cast<const unsigned char *>(segment.codes);
  for (int64_t first = 0; first < blocks; first += kChunk) {
    int64_t count = blocks - first < kChunk ? blocks - first : kChunk;
    const unsigned char *source = codes + first * block_bytes(scheme.codes);
    if (work(scales, source, first, count) >= F32::kInfinity) {
      float block_scales[kChunk];
      scales.spread(first, count, block_scales);
      return find_non_finite(scheme.codes, source, block_scales, number, first, non_finite);
    }
  }

  return SPARKFP4_OK;
}

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

sparkfp4_status sparkfp4_quantized_amax(sparkfp4_tier tier, const sparkfp4_scheme *scheme,
                                        const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                        int64_t cols, float *amax, sparkfp4_position *non_finite) {
  if (!valid(scheme) || total_elements(segments, segment_count, cols) < 0 || amax == nullptr ||
      non_finite == nullptr) {
    return SPARKFP4_INVALID;
  }

  const Kernel *chosen = kernel(tier);
  if (chosen == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  uint32_t largest = 0;
  CodeAmaxFunction code_amax = chosen->code_amax[scheme->codes];
  float block_scales[kChunk];
  for (int64_t i = 0; i < segment_count; i++) {
    auto work = [&](const Scales &of_segment, const unsigned char *source, int64_t first, int64_t blocks) {
      of_segment.spread(first, blocks, block_scales);
      uint32_t magnitude = code_amax(source, block_scales, blocks);
      largest = magnitude > largest ? magnitude : largest;
      return magnitude;
    };
    sparkfp4_status status = each_chunk(*scheme, segments[i], i, cols, non_finite, work);
    if (status != SPARKFP4_OK) {
      return status;
    }
  }

  *amax = bits_as<float>(largest);
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_quantized_encode(sparkfp4_tier tier, sparkfp4_recipe recipe, sparkfp4_search search,
                                          const float *importance, const sparkfp4_scheme *scheme,
                                          const sparkfp4_quantized_segment *segments, int64_t segment_count,
                                          int64_t cols, float global_scale, void *packed, void *scales,
                                          sparkfp4_error_sums *sums, sparkfp4_position *non_finite) {
  bool known = valid(scheme) && valid(recipe) && valid(search, importance);
  int64_t elements = known ? total_elements(segments, segment_count, cols) : -1;
  if (elements < 0 || !valid_scale(global_scale) || non_finite == nullptr ||
      (elements > 0 && (packed == nullptr || scales == nullptr))) {
    return SPARKFP4_INVALID;
  }

  const Kernel *chosen = kernel(tier);
  if (chosen == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  EncodeFunction encode = chosen->encode[recipe][kCodeSources + scheme->codes];
  HessianBlocks hessians(search, elements > 0 ? cols / kBlock : 0);
  OwnedTables tables(search == SPARKFP4_RTN && tier != SPARKFP4_SCALAR && has_tables(*scheme) &&
                     are_tables_worth(*scheme, elements, sums != nullptr));
  EncodeTask task = {};
  task.hessians = hessians.get();
  task.tables = tables.get();
  task.global_scale = global_scale;
  task.search = search;
  task.importance = importance;
  task.row_blocks = cols / kBlock;
  task.packed = static_cast<unsigned char *>(packed);
  task.scales = static_cast<unsigned char *>(scales);
  float block_scales[kChunk];
  task.block_scales = block_scales;
  E4m3Tables e4m3_tables;
  uint32_t e4m3_offsets[kChunk];
  task.e4m3_offsets = e4m3_offsets;
  for (int64_t i = 0; i < segment_count; i++) {
    ErrorLanes lanes = {};
    task.sums = sums == nullptr ? nullptr : &lanes;
    bool shared = search == SPARKFP4_RTN && tier != SPARKFP4_SCALAR &&
                  e4m3_tables.begin(*scheme, segments[i].rows, cols, kChunk);
    task.e4m3_tables = shared ? e4m3_tables.get() : nullptr;
    auto work = [&](const Scales &of_segment, const unsigned char *source, int64_t first, int64_t blocks) {
      if (shared) {
        auto scale = [&](int64_t row, int64_t index) { return of_segment.scale(row, index); };
        e4m3_tables.spread(first, blocks, scale, e4m3_offsets);
      } else {
        of_segment.spread(first, blocks, block_scales);
      }

      task.source = source;
      task.first_block = first;
      task.blocks = blocks;
      uint32_t magnitude = encode(task);
      task.packed += blocks * kPackedBlock;
      task.scales += blocks;
      return magnitude;
    };
    sparkfp4_status status = each_chunk(*scheme, segments[i], i, cols, non_finite, work);
    if (status != SPARKFP4_OK) {
      return status;
    }

    store_sums(lanes, sums, i);
  }

  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_dequantize_bf16(sparkfp4_tier tier, const sparkfp4_scheme *scheme,
                                         const sparkfp4_quantized_segment *segment, int64_t cols, void *out,
                                         sparkfp4_position *non_finite) {
  int64_t elements;
  if (!valid(scheme) || segment == nullptr || segment->rows < 0 || cols < 0 ||
      __builtin_mul_overflow(segment->rows, cols, &elements) || elements > INT64_MAX / 4 || non_finite == nullptr ||
      (elements > 0 && (segment->codes == nullptr || segment->scales == nullptr || out == nullptr))) {
    return SPARKFP4_INVALID;
  }

  const Kernel *chosen = kernel(tier);
  if (chosen == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  // Whole blocks of an even number of elements but the last of a row, so that each run begins with a byte.
  int64_t run = scheme->block_cols == 0 ? cols : scheme->block_cols;
  int64_t row_bytes = code_row_bytes(scheme->codes, cols);
  for (int64_t row = 0; row < segment->rows && cols > 0; row++) {
    const unsigned char *codes = static_cast<const unsigned char *>(segment->codes) + row * row_bytes;
    int64_t scale_row = scheme->block_rows == 0 ? 0 : row / scheme->block_rows;
    int64_t scales_in_row = (cols + run - 1) / run;
    const unsigned char *scales = static_cast<const unsigned char *>(segment->scales) +
                                  scale_row * scales_in_row * scale_bytes(scheme->scales);
    unsigned char *to = static_cast<unsigned char *>(out) + 2 * row * cols;
    for (int64_t i = 0; i < scales_in_row; i += kChunk) {
      int64_t first = i * run;
      int64_t runs = scales_in_row - i < kChunk ? scales_in_row - i : kChunk;
      int64_t count = cols - first < runs * run ? cols - first : runs * run;
      float run_scales[kChunk];
      spread_row(scheme->scales, scales, 1, i, runs, run_scales);
      const unsigned char *source = codes + first * block_bytes(scheme->codes) / kBlock;
      if (chosen->to_bf16[scheme->codes](source, run_scales, run, count, to + 2 * first) >= kRoundsToInfinity) {
        int64_t index = 0;
        float value = element(scheme->codes, source, index, run_scales[0]);
        while ((bits_as<uint32_t>(value) & F32::kMagnitude) < kRoundsToInfinity) {
          index++;
          value = element(scheme->codes, source, index, run_scales[index / run]);
        }

        *non_finite = {0, row * cols + first + index, value};
        return SPARKFP4_NON_FINITE;
      }
    }
  }

  return SPARKFP4_OK;
}
