// Decodes tensors, and looks for scales that no runtime takes.
#include <cstring>

#include "layout_kernel.h"
#include "layout_shape.h"

namespace sparkfp4 {
namespace {

// A tensor's rows on their way to a type.
class Rows {
 public:
  Rows(const sparkfp4_tensor &tensor, DecodeFunction decode, int64_t element_bytes)
      : tensor_(tensor), view_(view_of(tensor)), decode_(decode), element_bytes_(element_bytes) {}

  void decode(int32_t expert, int32_t row, unsigned char *out) {
    const float global = nvfp4TensorScaleAt(tensor_.global_scale, expert);
    const int32_t tiles = static_cast<int32_t>(tensor_.k / kNvfp4ElemsPerTile);
    for (int32_t first = 0; first < tiles; first += kTiles) {
      int32_t count = tiles - first < kTiles ? tiles - first : kTiles;
      Dim3 tile = tensor_.is_activation ? Dim3{row, first, 0} : Dim3{expert, row, first};
      load_scales(tile, count);
      decode_(view_.quantized_data + 16 * view_.tileOffsetInt4(tile), scales_, global, 4 * count, out);
      out += count * kNvfp4ElemsPerTile * element_bytes_;
    }
  }

 private:
  static constexpr int32_t kTiles = 64;  // of a row at a time

  // Those of the tiles from this one on, in the order of their blocks.
  void load_scales(Dim3 tile, int32_t count) {
    if (tensor_.is_activation) {
      for (int32_t i = 0; i < count; i++, tile.y++) {
        uint32_t word = nvfp4ExchangedScales(view_.readBlockScaleWordLinear(tile));
        std::memcpy(scales_ + 4 * i, &word, sizeof word);
      }
    } else {
      const unsigned char *word = view_.block_scale + 4 * view_.tileScaleIndex(tile);
      for (int32_t i = 0; i < count; i++) {
        std::memcpy(scales_ + 4 * i, word + i * kAtomBytes, 4);
      }
    }
  }

  static constexpr int kAtomBytes = 512;  // the words of 128 rows

  const sparkfp4_tensor &tensor_;
  const NVFP4Tensor view_;
  const DecodeFunction decode_;
  const int64_t element_bytes_;
  unsigned char scales_[4 * kTiles] = {};
};

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

sparkfp4_status sparkfp4_decode_tensor(sparkfp4_tier tier, const sparkfp4_tensor *tensor, sparkfp4_dtype dtype,
                                       void *out) {
  if (!valid_tensor(tensor, dtype, out)) {
    return SPARKFP4_INVALID;
  }

  const LayoutKernel *kernel = layout_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  // Rows are whole lines.
  const int64_t bytes = dtype == SPARKFP4_F32 ? 4 : 2;
  const bool streams = is_line(out) && tensor->experts * tensor->rows * tensor->k * bytes >= kStreamedBytes;
  Rows rows(*tensor, (dtype == SPARKFP4_F32 ? kernel->to_f32 : kernel->to_bf16)[streams], bytes);
  unsigned char *next = static_cast<unsigned char *>(out);
  for (int64_t expert = 0; expert < tensor->experts; expert++) {
    for (int64_t row = 0; row < tensor->rows; row++) {
      rows.decode(static_cast<int32_t>(expert), static_cast<int32_t>(row), next);
      next += tensor->k * bytes;
    }
  }

  kernel->fence();
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_first_above(const void *bytes, int64_t count, int32_t limit, int64_t *index) {
  if (count < 0 || (count > 0 && bytes == nullptr) || limit < 0 || limit > 254 || index == nullptr) {
    return SPARKFP4_INVALID;
  }

  constexpr int64_t kRun = 4096;
  const unsigned char *data = static_cast<const unsigned char *>(bytes);
  for (int64_t start = 0; start < count; start += kRun) {
    int64_t end = count - start < kRun ? count : start + kRun;
    unsigned char largest = 0;
    for (int64_t i = start; i < end; i++) {
      largest = data[i] > largest ? data[i] : largest;
    }

    for (int64_t i = start; largest > limit && i < end; i++) {
      if (data[i] > limit) {
        *index = i;
        return SPARKFP4_OK;
      }
    }
  }

  *index = -1;
  return SPARKFP4_OK;
}
