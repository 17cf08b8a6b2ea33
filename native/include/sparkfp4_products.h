/*
 * Products of matrices in binary64, for what GPTQ and a calibration sum up.
 *
 * Each element is the sum of its products in one order, and each product and each sum is rounded: every tier gives the
 * same bits, but for those of a NaN. That is why no tier fuses the two, at half of the rate that a processor could have.
 */
#ifndef SPARKFP4_PRODUCTS_H
#define SPARKFP4_PRODUCTS_H

#include "sparkfp4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix of binary64, or a part of one: its element [i][j] is data[i * row_stride + j * col_stride]. */
typedef struct sparkfp4_matrix {
  double *data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride;
  int64_t col_stride;
} sparkfp4_matrix;

/*
 * c[i][j] = (((c[i][j] + a[i][0] b[0][j]) + a[i][1] b[1][j]) + ...), for all i and j.
 *
 * a: [rows of c, depth], of any strides that are not negative: a transposed matrix is one whose strides are exchanged.
 * b: [depth, columns of c], and c: a column stride of 1, a row stride of at least their columns; c overlaps neither.
 *
 * SPARKFP4_INVALID where the shapes do not go together or a stride is none of these.
 */
SPARKFP4_API sparkfp4_status sparkfp4_add_products(sparkfp4_tier tier, const sparkfp4_matrix *a,
                                                   const sparkfp4_matrix *b, const sparkfp4_matrix *c);

#ifdef __cplusplus
}
#endif

#endif
