// The C interface of layouts: checks arguments and chooses what moves the bytes.
#include "kernel.h"
#include "layout_shape.h"
#include "layout_walk.h"

namespace sparkfp4 {
namespace {

void arrange(const LayoutKernel &kernel, const BlockMoves &moves, const MarlinScale *scale, const RowShape &shape,
             const unsigned char *const *members, unsigned char *out) {
  Walk walk(kernel, shape);
  moves.shape == nullptr ? walk.arrange_rows(members, out) : walk.arrange(moves, scale, members, out);
}

void restore(const LayoutKernel &kernel, const BlockMoves &moves, const MarlinScale *scale, const RowShape &shape,
             const unsigned char *arranged, unsigned char *const *members) {
  Walk walk(kernel, shape);
  moves.shape == nullptr ? walk.restore_rows(arranged, members) : walk.restore(moves, scale, arranged, members);
}

const unsigned char *bytes_of(const void *data) { return static_cast<const unsigned char *>(data); }
unsigned char *bytes_of(void *data) { return static_cast<unsigned char *>(data); }

// The members as bytes.
template <typename Byte, typename Void>
struct Members {
  Byte *data[SPARKFP4_MAX_MEMBERS];

  Members(const RowShape &shape, Void *const *members) {
    for (int64_t i = 0; i < shape.members; i++) {
      data[i] = bytes_of(members[i]);
    }
  }
};

using Sources = Members<const unsigned char, const void>;
using Targets = Members<unsigned char, void>;

}  // namespace

const LayoutKernel *layout_kernel(sparkfp4_tier tier) {
  // The kernels of layouts are there where those of weights are.
  if (kernel(tier) == nullptr) {
    return nullptr;
  }

  switch (tier) {
#ifdef SPARKFP4_X86
    case SPARKFP4_AVX2:
      return &kLayoutAvx2;
    case SPARKFP4_AVX512:
      return &kLayoutAvx512;
#endif
    default:
      return &kLayoutScalar;
  }
}

}  // namespace sparkfp4

using namespace sparkfp4;

int64_t sparkfp4_arranged_code_bytes(sparkfp4_code_layout layout, const sparkfp4_arrangement *shape) {
  RowShape rows;
  return code_shape(layout, shape, &rows) ? rows.bytes() : -1;
}

int64_t sparkfp4_arranged_scale_bytes(sparkfp4_scale_layout layout, const sparkfp4_arrangement *shape) {
  RowShape rows;
  return scale_shape(layout, shape, &rows) ? rows.bytes() : -1;
}

sparkfp4_status sparkfp4_arrange_codes(sparkfp4_tier tier, sparkfp4_code_layout layout,
                                       const sparkfp4_arrangement *shape, const void *const *members, void *out) {
  RowShape rows;
  if (!code_shape(layout, shape, &rows) || !valid_members(rows, members, out)) {
    return SPARKFP4_INVALID;
  }

  const LayoutKernel *kernel = layout_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  arrange(*kernel, kernel->codes[layout], nullptr, rows, Sources(rows, members).data, bytes_of(out));
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_restore_codes(sparkfp4_tier tier, sparkfp4_code_layout layout,
                                       const sparkfp4_arrangement *shape, const void *arranged, void *const *members) {
  RowShape rows;
  if (!code_shape(layout, shape, &rows) || !valid_members(rows, members, arranged)) {
    return SPARKFP4_INVALID;
  }

  const LayoutKernel *kernel = layout_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  restore(*kernel, kernel->codes[layout], nullptr, rows, bytes_of(arranged), Targets(rows, members).data);
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_arrange_scales(sparkfp4_tier tier, sparkfp4_scale_layout layout,
                                        const sparkfp4_arrangement *shape, const void *const *members, float factor,
                                        void *out) {
  RowShape rows;
  int exponent = factor_exponent(layout, factor);
  if (!scale_shape(layout, shape, &rows) || exponent < 0 || !valid_members(rows, members, out)) {
    return SPARKFP4_INVALID;
  }

  const LayoutKernel *kernel = layout_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  MarlinScale scale(exponent);
  arrange(*kernel, kernel->scales[layout], &scale, rows, Sources(rows, members).data, bytes_of(out));
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_restore_scales(sparkfp4_tier tier, sparkfp4_scale_layout layout,
                                        const sparkfp4_arrangement *shape, const void *arranged, float factor,
                                        void *const *members) {
  RowShape rows;
  int exponent = factor_exponent(layout, factor);
  if (!scale_shape(layout, shape, &rows) || exponent < 0 || !valid_members(rows, members, arranged)) {
    return SPARKFP4_INVALID;
  }

  const LayoutKernel *kernel = layout_kernel(tier);
  if (kernel == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  MarlinScale scale(exponent);
  restore(*kernel, kernel->scales[layout], &scale, rows, bytes_of(arranged), Targets(rows, members).data);
  return SPARKFP4_OK;
}
