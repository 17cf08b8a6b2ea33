// What a search by local Hessians keeps of each column of blocks, which all rows of a call share.
//
// With H the symmetric part, a loss is Q(e) = eᵀ H e. Where H - t * diag(H) is positive semidefinite, Q(e) is at least the
// sum of t * H[i][i] * e[i]^2, whatever the errors are: a weighted sum of squares, for which the bounds of search.h hold.
// t is the largest of some powers of two, and halves between, for which a Cholesky factorisation in doubles succeeds. Its
// own error is below 2^-40 of the diagonal, a hundredth of t is left out.
#pragma once

#include <cstdlib>

#include "arithmetic.h"

namespace sparkfp4 {

constexpr int kUpper = kBlock * (kBlock + 1) / 2;

struct HessianBlock {
  float upper[kUpper];    // row by row H[i][i], then H[i][j] + H[j][i] for j above i
  float bound[kBlock];    // Q(e) is at least the sum of bound[i] * e[i]^2, where is_bounded is true
  float weight;           // sum of all magnitudes, rounded up; 0: not prepared yet; negative: not to be relied on
  bool is_bounded;        // false: nothing is known of Q(e), which may be negative
};

// Between these weights nothing of a loss leaves the normal range, for amaxes within kLeastSwept and kMostSwept.
constexpr float kLeastHessian = 0x1p-30f;
constexpr float kMostHessian = 0x1p30f;

// Whether the matrix less t times its diagonal is positive semidefinite. Rows of zeros are left out.
static inline bool is_above_diagonal(const double *matrix, double t) {
  double factor[kBlock][kBlock];
  for (int j = 0; j < kBlock; j++) {
    for (int i = j; i < kBlock; i++) {
      double x = matrix[i * kBlock + j] * (i == j ? 1 - t : 1);
      for (int k = 0; k < j; k++) {
        x -= factor[i][k] * factor[j][k];
      }

      if (i > j) {
        factor[i][j] = factor[j][j] > 0 ? x / factor[j][j] : 0;
      } else if (x > 0) {
        factor[j][j] = __builtin_sqrt(x);
      } else if (matrix[j * kBlock + j] == 0) {
        // Then all of its row has to be zero.
        for (int k = 0; k < kBlock; k++) {
          if (matrix[j * kBlock + k] != 0) {
            return false;
          }
        }

        factor[j][j] = 0;
      } else {
        return false;
      }
    }
  }

  return true;
}

static inline double share_of_diagonal(const double *matrix) {
  for (double t = 0.5; t >= 0x1p-10; t /= 2) {
    if (is_above_diagonal(matrix, t)) {
      return is_above_diagonal(matrix, 1.5 * t) ? 1.5 * t : t;
    }
  }

  return 0;
}

// From a Hessian at any address.
static inline void prepare_hessian(const float *hessian, HessianBlock *block) {
  float h[kBlock * kBlock];
  std::memcpy(h, hessian, sizeof h);
  double weight = 0;
  double symmetric[kBlock * kBlock];
  float *upper = block->upper;
  for (int i = 0; i < kBlock; i++) {
    for (int j = 0; j < kBlock; j++) {
      double both = static_cast<double>(h[i * kBlock + j]) + h[j * kBlock + i];
      weight += __builtin_fabs(static_cast<double>(h[i * kBlock + j]));
      symmetric[i * kBlock + j] = both / 2;
      if (j >= i) {
        *upper++ = i == j ? h[i * kBlock + i] : static_cast<float>(both);
      }
    }
  }

  bool usable = weight >= kLeastHessian && weight <= kMostHessian;
  double share = usable ? share_of_diagonal(symmetric) : 0;
  for (int i = 0; i < kBlock; i++) {
    block->bound[i] = static_cast<float>(0.99 * share * symmetric[i * kBlock + i]);
  }

  block->is_bounded = share > 0;
  block->weight = usable ? static_cast<float>(weight * (1 + 0x1p-20)) : -1;
}

// Those of a call, prepared as they are met; none where the search is another or there is no memory, which makes it slow.
class HessianBlocks {
 public:
  HessianBlocks(sparkfp4_search search, int64_t row_blocks)
      : blocks_(search == SPARKFP4_WEIGHTED_HESSIAN && row_blocks > 0
                    ? static_cast<HessianBlock *>(std::calloc(static_cast<size_t>(row_blocks), sizeof(HessianBlock)))
                    : nullptr) {}
  HessianBlocks(const HessianBlocks &) = delete;
  HessianBlocks &operator=(const HessianBlocks &) = delete;
  ~HessianBlocks() { std::free(blocks_); }

  HessianBlock *get() const { return blocks_; }

 private:
  HessianBlock *blocks_;
};

}  // namespace sparkfp4
