// Products in binary64, beside one whose operands the second-level cache holds, in the same run.
#include "sparkfp4_products.h"

#include <random>

#include "harness.h"

namespace {

struct Shape {
  const char *what;
  int64_t rows;
  int64_t depth;
  int64_t cols;
  bool transposed;  // a, which lies [depth, rows]
};

constexpr Shape kShapes[] = {
    {"in the second-level cache, 128 x 128 by 64", 128, 128, 64, false},
    {"calibration, 32 tokens, K 7168", 64, 32, 7168, true},
    {"calibration, 128 tokens, K 2048", 64, 128, 2048, true},
    {"calibration, 128 tokens, K 7168", 64, 128, 7168, true},
    {"GPTQ, a panel of 128, 128 weight rows, K 2048", 128, 2048, 128, false},
    {"GPTQ, a panel of 128, 128 weight rows, K 7168", 128, 7168, 128, false},
    {"factor, a panel of 128, K 2048", 128, 128, 2048, true},
    {"factor, a panel of 128, K 7168", 128, 128, 7168, true},
};

// Operands of one shape.
class Product {
 public:
  explicit Product(const Shape &shape)
      : shape_(shape), a_(shape.rows * shape.depth), b_(shape.depth * shape.cols), c_(shape.rows * shape.cols) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal(0, 1);
    for (std::vector<double> *values : {&a_, &b_}) {
      for (double &value : *values) {
        value = normal(random);
      }
    }
  }

  double flops() const { return 2.0 * static_cast<double>(shape_.rows * shape_.depth * shape_.cols); }

  void add(sparkfp4_tier tier) {
    int64_t row_stride = shape_.transposed ? 1 : shape_.depth;
    int64_t col_stride = shape_.transposed ? shape_.rows : 1;
    sparkfp4_matrix a = {a_.data(), shape_.rows, shape_.depth, row_stride, col_stride};
    sparkfp4_matrix b = {b_.data(), shape_.depth, shape_.cols, shape_.cols, 1};
    sparkfp4_matrix c = {c_.data(), shape_.rows, shape_.cols, shape_.cols, 1};
    check(sparkfp4_add_products(tier, &a, &b, &c));
  }

 private:
  const Shape &shape_;
  std::vector<double> a_;
  std::vector<double> b_;
  std::vector<double> c_;
};

}  // namespace

void bench_products(int rounds) {
  const char *names[] = {"Scalar", "AVX2", "AVX-512"};
  for (sparkfp4_tier tier : {SPARKFP4_SCALAR, SPARKFP4_AVX2, SPARKFP4_AVX512}) {
    if (!is_measured(tier)) {
      continue;
    }

    std::vector<Product> products(std::begin(kShapes), std::end(kShapes));
    std::vector<Work> works;
    for (Product &product : products) {
      // each work does the same number of operations, those that are small again and again
      int repeats = static_cast<int>(3e8 / product.flops()) + 1;
      works.emplace_back("", 0, [&product, tier, repeats] {
        for (int i = 0; i < repeats; i++) {
          product.add(tier);
        }
      });
      works.back().bytes_moved = product.flops() * repeats;
    }

    measure(works, rounds, 1);
    std::printf("\n%s. Products in binary64\n\n| work | GFLOP/s, median of %d | best | of the first |\n", names[tier],
                rounds);
    std::printf("| --- | --- | --- | --- |\n");
    double first = works[0].bytes_moved / works[0].median();
    for (size_t i = 0; i < works.size(); i++) {
      double rate = works[i].bytes_moved / works[i].median();
      std::printf("| %s | %.1f | %.1f | %.0f %% |\n", kShapes[i].what, rate / kGiga,
                  works[i].bytes_moved / works[i].best() / kGiga, 100 * rate / first);
    }
  }
}
