// GB/s of bf16 source, by tier.
#include <cstring>
#include <random>

#include "harness.h"

namespace {

constexpr int64_t kCols = 2048;

struct Unit {
  const char *title;
  int64_t rows;
};

// Gaussian weights of deviation 0.02.
std::vector<uint16_t> weights(int64_t elements) {
  std::vector<uint16_t> data(elements);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  for (uint16_t &element : data) {
    float w = normal(random);
    uint32_t bits;
    std::memcpy(&bits, &w, sizeof bits);
    element = static_cast<uint16_t>(bits >> 16);
  }

  return data;
}

void measure_unit(const Unit &unit, int rounds, const std::vector<uint16_t> &source) {
  int64_t elements = unit.rows * kCols;
  int64_t bytes = 2 * elements;
  std::vector<unsigned char> packed(elements / 2);
  std::vector<unsigned char> scales(elements / 16);
  std::vector<unsigned char> copy(bytes);
  sparkfp4_segment all = {source.data(), elements};
  sparkfp4_segment rows = {source.data(), unit.rows};
  sparkfp4_position position;
  float largest = 0;
  check(sparkfp4_amax(SPARKFP4_SCALAR, SPARKFP4_BF16, &all, 1, &largest, &position));

  std::vector<Work> table;
  table.emplace_back("memcpy", 4, [&] { std::memcpy(copy.data(), source.data(), bytes); });
  const char *names[] = {"scalar", "avx2", "avx512"};
  for (int t = SPARKFP4_SCALAR; t <= SPARKFP4_AVX512; t++) {
    sparkfp4_tier tier = static_cast<sparkfp4_tier>(t);
    if (!is_measured(tier)) {
      continue;
    }

    auto amax = [&, tier] {
      float result;
      check(sparkfp4_amax(tier, SPARKFP4_BF16, &all, 1, &result, &position));
    };
    auto encode = [&, tier](sparkfp4_recipe recipe, bool with_sums) {
      sparkfp4_error_sums sums;
      float scale = recipe == SPARKFP4_MODELOPT ? largest / 2688 : 2688 / largest;
      check(sparkfp4_encode(tier, recipe, SPARKFP4_RTN, nullptr, SPARKFP4_BF16, &rows, 1, kCols, scale,
                            packed.data(), scales.data(), with_sums ? &sums : nullptr, &position));
    };
    std::string name = names[t];
    table.emplace_back(name + " amax", 2, amax);
    table.emplace_back(name + " encode", 2.5625, [=] { encode(SPARKFP4_MODELOPT, false); });
    table.emplace_back(name + " encode, compressed-tensors", 2.5625,
                       [=] { encode(SPARKFP4_COMPRESSED_TENSORS, false); });
    table.emplace_back(name + " encode + sums", 2.5625, [=] { encode(SPARKFP4_MODELOPT, true); });
    table.emplace_back(name + " amax, encode + sums", 4.5625, [=] {
      amax();
      encode(SPARKFP4_MODELOPT, true);
    });
  }

  int repeats = static_cast<int>(std::max<int64_t>(1, (16 << 20) / bytes));
  measure(table, rounds, repeats);
  std::printf("\n%s, %.1f MB\n\n| work | GB/s of bf16, median of %d | best |\n| --- | --- | --- |\n", unit.title,
              bytes / 1e6, rounds);
  for (const Work &work : table) {
    std::printf("| %s | %.2f | %.2f |\n", work.name.c_str(), bytes / kGiga / work.median(),
                bytes / kGiga / work.best());
  }
}

}  // namespace

void bench_bf16(int rounds) {
  Unit large = {"From memory", 14336};
  Unit small = {"In the second-level cache", 128};
  std::vector<uint16_t> source = weights(large.rows * kCols);
  measure_unit(large, rounds, source);
  measure_unit(small, rounds, source);
}
