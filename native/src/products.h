// Products of matrices, of vectors of kBytes. What GCC and Clang make of arithmetic on such vectors is that of each
// element, in the instructions of the tier whose file includes this.
//
// A tile of c stays in registers while a strip of a and a strip of b go by: of b some columns of some rows, packed, for
// rows that are a power of two apart would fight for the same lines of the cache.
#pragma once

#include <cstring>

#include "product_kernel.h"

namespace sparkfp4 {

template <int kBytes, int kVectors>
class Products {
 public:
  static void add(const sparkfp4_matrix &a, const sparkfp4_matrix &b, const sparkfp4_matrix &c) {
    alignas(64) double strip[kDepth * kCols];
    for (int64_t k = 0; k < b.rows; k += kDepth) {
      int64_t depth = least(b.rows - k, kDepth);
      for (int64_t j = 0; j < b.cols; j += kCols) {
        int64_t cols = least(b.cols - j, kCols);
        pack(b.data + k * b.row_stride + j, b.row_stride, depth, cols, strip);
        for (int64_t i = 0; i < c.rows; i += kRows) {
          add_tile(Left{a.data + i * a.row_stride + k * a.col_stride, a.row_stride, a.col_stride}, strip, depth,
                   c.data + i * c.row_stride + j, c.row_stride, least(c.rows - i, kRows), cols);
        }
      }
    }
  }

 private:
  typedef double Vector __attribute__((vector_size(kBytes)));

  static constexpr int64_t kLanes = kBytes / 8;
  static constexpr int64_t kRows = 4;  // of a tile: with four vectors each, what 32 registers hold beside a strip's row
  static constexpr int64_t kCols = kVectors * kLanes;
  static constexpr int64_t kDepth = 128;

  // Where a strip of a begins.
  struct Left {
    const double *data;
    int64_t row_stride;
    int64_t col_stride;
  };

  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

  // [depth, cols] as [depth, kCols], with zeros where b ends.
  static void pack(const double *b, int64_t stride, int64_t depth, int64_t cols, double *strip) {
    if (cols == kCols) {
      for (int64_t k = 0; k < depth; k++) {
        std::memcpy(strip + k * kCols, b + k * stride, kCols * sizeof(double));
      }

      return;
    }

    for (int64_t k = 0; k < depth; k++) {
      std::memcpy(strip + k * kCols, b + k * stride, static_cast<size_t>(cols) * sizeof(double));
      std::memset(strip + k * kCols + cols, 0, static_cast<size_t>(kCols - cols) * sizeof(double));
    }
  }

  // A tile at c's edges is worked on beside it.
  static void add_tile(const Left &a, const double *strip, int64_t depth, double *c, int64_t stride, int64_t rows,
                       int64_t cols) {
    if (cols == kCols) {
      return add_rows(a, strip, depth, c, stride, rows);
    }

    double tile[kRows * kCols] = {};
    for (int64_t i = 0; i < rows; i++) {
      std::memcpy(tile + i * kCols, c + i * stride, static_cast<size_t>(cols) * sizeof(double));
    }

    add_rows(a, strip, depth, tile, kCols, rows);
    for (int64_t i = 0; i < rows; i++) {
      std::memcpy(c + i * stride, tile + i * kCols, static_cast<size_t>(cols) * sizeof(double));
    }
  }

  static void add_rows(const Left &a, const double *strip, int64_t depth, double *c, int64_t stride, int64_t rows) {
    switch (rows) {
      case 1:
        return add_full<1>(a, strip, depth, c, stride);
      case 2:
        return add_full<2>(a, strip, depth, c, stride);
      case 3:
        return add_full<3>(a, strip, depth, c, stride);
      default:
        return add_full<4>(a, strip, depth, c, stride);
    }
  }

  template <int kTileRows>
  static void add_full(const Left &a, const double *strip, int64_t depth, double *c, int64_t stride) {
    Vector sums[kTileRows][kVectors];
    for (int i = 0; i < kTileRows; i++) {
      for (int v = 0; v < kVectors; v++) {
        std::memcpy(&sums[i][v], c + i * stride + v * kLanes, kBytes);
      }
    }

    for (int64_t k = 0; k < depth; k++) {
      Vector b[kVectors];
      for (int v = 0; v < kVectors; v++) {
        std::memcpy(&b[v], strip + k * kCols + v * kLanes, kBytes);
      }

      for (int i = 0; i < kTileRows; i++) {
        double x = a.data[i * a.row_stride + k * a.col_stride];
        for (int v = 0; v < kVectors; v++) {
          sums[i][v] += x * b[v];
        }
      }
    }

    for (int i = 0; i < kTileRows; i++) {
      for (int v = 0; v < kVectors; v++) {
        std::memcpy(c + i * stride + v * kLanes, &sums[i][v], kBytes);
      }
    }
  }
};

}  // namespace sparkfp4
