// Products of random shapes, parts of larger matrices among them, in buffers that end with their last element: to be built
// with AddressSanitizer and UndefinedBehaviorSanitizer. Every tier must give the bits of the definition, and leave alone
// what lies beside c.
//
// usage: products [ROUNDS [SEED]]
#include "sparkfp4_products.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr int kRounds = 3000;
constexpr sparkfp4_tier kTiers[] = {SPARKFP4_SCALAR, SPARKFP4_AVX2, SPARKFP4_AVX512};

class Random {
 public:
  explicit Random(uint64_t seed) : bits_(seed) {}
  int64_t below(int64_t limit) { return static_cast<int64_t>(bits_() % static_cast<uint64_t>(limit)); }

  // Mostly values of like sizes, whose sums depend on their order; sometimes any bits.
  std::vector<double> values(int64_t count) {
    std::vector<double> values(count);
    bool any = below(8) == 0;
    for (double &value : values) {
      uint64_t bits = bits_();
      uint64_t usual = (bits & 0x800fffffffffffff) | (1019 + (bits >> 52) % 8) << 52;
      std::memcpy(&value, any ? &bits : &usual, sizeof value);
    }

    return values;
  }

 private:
  std::mt19937_64 bits_;
};

// Elements from the first to the last of a matrix.
int64_t span(const sparkfp4_matrix &matrix) {
  return matrix.rows == 0 || matrix.cols == 0
             ? 0
             : (matrix.rows - 1) * matrix.row_stride + (matrix.cols - 1) * matrix.col_stride + 1;
}

[[noreturn]] void fail(const char *what, int round, sparkfp4_tier tier) {
  std::fprintf(stderr, "%s: round %d, tier %d\n", what, round, tier);
  std::exit(1);
}

bool same(const std::vector<double> &a, const std::vector<double> &b) {
  for (size_t i = 0; i < a.size(); i++) {
    // which NaN a sum of two gives is not said
    if (!(a[i] != a[i] && b[i] != b[i]) && std::memcmp(&a[i], &b[i], sizeof a[i]) != 0) {
      return false;
    }
  }

  return true;
}

void round_of(Random &random, int round) {
  int64_t rows = random.below(random.below(4) == 0 ? 70 : 9);
  int64_t depth = random.below(random.below(4) == 0 ? 300 : 9);
  int64_t cols = random.below(random.below(4) == 0 ? 140 : 40);
  sparkfp4_matrix a = {nullptr, rows, depth, depth + random.below(3), 1};
  if (random.below(2) == 0) {
    a.row_stride = 1 + random.below(2);
    a.col_stride = rows * a.row_stride + random.below(3);
  }

  sparkfp4_matrix b = {nullptr, depth, cols, cols + random.below(3), 1};
  sparkfp4_matrix c = {nullptr, rows, cols, cols + random.below(3), 1};
  std::vector<double> left = random.values(span(a));
  std::vector<double> right = random.values(span(b));
  const std::vector<double> before = random.values(span(c));
  std::vector<double> expected = before;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < cols; j++) {
      for (int64_t k = 0; k < depth; k++) {
        expected[i * c.row_stride + j] += left[i * a.row_stride + k * a.col_stride] * right[k * b.row_stride + j];
      }
    }
  }

  a.data = left.data();
  b.data = right.data();
  for (sparkfp4_tier tier : kTiers) {
    std::vector<double> sums = before;
    c.data = sums.data();
    sparkfp4_status status = sparkfp4_add_products(tier, &a, &b, &c);
    if (status != (sparkfp4_has_tier(tier) ? SPARKFP4_OK : SPARKFP4_NO_TIER)) {
      fail("status", round, tier);
    }

    if (status == SPARKFP4_OK && !same(sums, expected)) {
      fail("sums", round, tier);
    }
  }
}

void refusals() {
  double value[4] = {1, 2, 3, 4};
  const sparkfp4_matrix good = {value, 2, 2, 2, 1};
  const sparkfp4_matrix transposed = {value, 2, 2, 1, 2};
  const sparkfp4_matrix narrow = {value, 2, 2, 1, 1};
  const sparkfp4_matrix long_one = {value, 3, 1, 1, 1};
  const sparkfp4_matrix negative = {value, 2, 2, -2, 1};
  const sparkfp4_matrix nowhere = {nullptr, 2, 2, 2, 1};
  const sparkfp4_matrix *cases[][3] = {
      {nullptr, &good, &good},    {&good, &transposed, &good}, {&good, &good, &transposed}, {&good, &narrow, &good},
      {&good, &long_one, &good},  {&long_one, &good, &good},   {&negative, &good, &good},   {&nowhere, &good, &good},
      {&good, &good, &long_one},
  };
  for (const auto &matrices : cases) {
    if (sparkfp4_add_products(SPARKFP4_SCALAR, matrices[0], matrices[1], matrices[2]) != SPARKFP4_INVALID) {
      fail("not refused", static_cast<int>(&matrices - cases), SPARKFP4_SCALAR);
    }
  }

  for (int i = 0; i < 4; i++) {
    if (value[i] != i + 1) {
      fail("written", i, SPARKFP4_SCALAR);
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : kRounds;
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Random random(seed);
  refusals();
  for (int round = 0; round < rounds; round++) {
    round_of(random, round);
  }

  std::printf("%d rounds of seed %" PRIu64 "\n", rounds, seed);
  return 0;
}
