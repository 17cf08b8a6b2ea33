// The C interface of products: checks arguments and chooses the tier.
#include "kernel.h"
#include "product_kernel.h"

namespace sparkfp4 {
namespace {

ProductFunction products(sparkfp4_tier tier) {
  switch (tier) {
#ifdef SPARKFP4_X86
    case SPARKFP4_AVX2:
      return kAvx2Products;
    case SPARKFP4_AVX512:
      return kAvx512Products;
#endif
    default:
      return kScalarProducts;
  }
}

bool is_matrix(const sparkfp4_matrix *matrix) {
  return matrix != nullptr && matrix->rows >= 0 && matrix->cols >= 0 && matrix->row_stride >= 0 &&
         matrix->col_stride >= 0 && (matrix->data != nullptr || matrix->rows == 0 || matrix->cols == 0);
}

bool is_row_major(const sparkfp4_matrix &matrix) {
  return matrix.col_stride == 1 && matrix.row_stride >= matrix.cols;
}

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

sparkfp4_status sparkfp4_add_products(sparkfp4_tier tier, const sparkfp4_matrix *a, const sparkfp4_matrix *b,
                                      const sparkfp4_matrix *c) {
  if (!is_matrix(a) || !is_matrix(b) || !is_matrix(c) || !is_row_major(*b) || !is_row_major(*c) ||
      a->rows != c->rows || a->cols != b->rows || b->cols != c->cols) {
    return SPARKFP4_INVALID;
  }

  if (kernel(tier) == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  products(tier)(*a, *b, *c);
  return SPARKFP4_OK;
}
