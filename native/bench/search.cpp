// GB/s of bf16 source of the scale searches, beside rtn, by tier.
#include <cmath>
#include <cstring>
#include <random>

#include "harness.h"

namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kRows = 2048;

// Gaussian weights, each row of its own deviation; or heavy-tailed ones.
std::vector<uint16_t> weights(bool heavy) {
  std::vector<uint16_t> data(kRows * kCols);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  std::student_t_distribution<float> student(3);
  float deviation = 1;
  for (size_t i = 0; i < data.size(); i++) {
    deviation = i % kCols == 0 ? std::exp(10 * normal(random)) : deviation;
    float w = heavy ? 0.01f * student(random) : deviation * normal(random);
    uint32_t bits;
    std::memcpy(&bits, &w, sizeof bits);
    data[i] = static_cast<uint16_t>(bits >> 16);
  }

  return data;
}

// The means of x xᵀ, 16 channels a block, of inputs that have something in common.
std::vector<float> hessians(std::mt19937 &random) {
  constexpr int kInputs = 256;
  std::vector<float> all(16 * kCols);
  std::normal_distribution<float> normal;
  for (int64_t block = 0; block < kCols / 16; block++) {
    for (int n = 0; n < kInputs; n++) {
      float common = normal(random);
      float x[16];
      for (int i = 0; i < 16; i++) {
        x[i] = (i % 4 + 1) * (0.7f * common + normal(random));
      }

      for (int i = 0; i < 256; i++) {
        all[256 * block + i] += x[i / 16] * x[i % 16] / kInputs;
      }
    }
  }

  return all;
}

void measure_weights(const char *title, int rounds, const std::vector<uint16_t> &source) {
  int64_t elements = kRows * kCols;
  std::vector<unsigned char> packed(elements / 2);
  std::vector<unsigned char> scales(elements / 16);
  std::vector<unsigned char> copy(2 * elements);
  std::vector<float> importance(kCols);
  std::mt19937 random(2);
  std::exponential_distribution<float> exponential;
  for (float &h : importance) {
    h = exponential(random);
  }

  std::vector<float> of_blocks = hessians(random);

  sparkfp4_segment all = {source.data(), elements};
  sparkfp4_segment rows = {source.data(), kRows};
  sparkfp4_segment few = {source.data(), kRows / 64};
  sparkfp4_position position;
  float largest = 0;
  check(sparkfp4_amax(SPARKFP4_SCALAR, SPARKFP4_BF16, &all, 1, &largest, &position));

  const char *tiers[] = {"scalar", "avx2", "avx512"};
  const char *searches[] = {"rtn", "four-over-six", "sweep", "weighted", "weighted by Hessians"};
  std::vector<Work> table;
  table.emplace_back("memcpy", 4, [&] { std::memcpy(copy.data(), source.data(), 2 * elements); });
  for (int t = SPARKFP4_SCALAR; t <= SPARKFP4_AVX512; t++) {
    sparkfp4_tier tier = static_cast<sparkfp4_tier>(t);
    for (int s = SPARKFP4_RTN; s <= SPARKFP4_WEIGHTED_HESSIAN && is_measured(tier); s++) {
      sparkfp4_search search = static_cast<sparkfp4_search>(s);
      auto run = [&, tier, search] {
        sparkfp4_error_sums sums;
        float scale = largest / (search == SPARKFP4_RTN ? 2688 : 1536);
        // All 126 scales in full are slow: the sixty-fourth part, and the time of all.
        bool full = search == SPARKFP4_WEIGHTED_HESSIAN && tier == SPARKFP4_SCALAR;
        const sparkfp4_segment *segment = full ? &few : &rows;
        const float *weighed = search == SPARKFP4_WEIGHTED           ? importance.data()
                               : search == SPARKFP4_WEIGHTED_HESSIAN ? of_blocks.data()
                                                                     : nullptr;
        check(sparkfp4_encode(tier, SPARKFP4_MODELOPT, search, weighed, SPARKFP4_BF16, segment, 1, kCols, scale, packed.data(), scales.data(), &sums, &position));
      };
      table.emplace_back(std::string(tiers[t]) + " " + searches[s], 2.5625, run);
    }
  }

  measure(table, rounds, 1);
  std::printf("\n%s, %.1f MB, with error sums\n\n| work | GB/s of bf16, median of %d | best | 1e9 elements/s |\n"
              "| --- | --- | --- | --- |\n", title, 2e-6 * elements, rounds);
  for (const Work &work : table) {
    double part = work.name == "scalar weighted by Hessians" ? 1.0 / 64 : 1;
    double bytes = 2 * elements * part / kGiga;
    std::printf("| %s | %.3f | %.3f | %.3f |\n", work.name.c_str(), bytes / work.median(), bytes / work.best(),
                bytes / 2 / work.median());
  }
}

}  // namespace

void bench_search(int rounds) {
  measure_weights("Gaussian, rows of lognormal deviation", rounds, weights(false));
  measure_weights("Student's t of 3 degrees", rounds, weights(true));
}
