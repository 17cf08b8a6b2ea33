// GB/s of bf16 source a core, by tier, beside memcpy in the same run. Prints a Markdown table.
// usage: sparkfp4-bench [ROUNDS]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "sparkfp4.h"

namespace {

constexpr int64_t kCols = 2048;
constexpr double kGiga = 1e9;

struct Unit {
  const char *title;
  int64_t rows;
};

struct Row {
  std::string work;
  std::function<void()> run;
  std::vector<double> seconds;
};

double seconds_of(const std::function<void()> &run, int repeats) {
  // The thread's own time: what other processes take of the core is not the kernel's.
  timespec start;
  timespec end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  for (int i = 0; i < repeats; i++) {
    run();
  }

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return ((end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec)) / repeats;
}

void check(sparkfp4_status status) {
  if (status != SPARKFP4_OK) {
    std::fprintf(stderr, "Cannot run the kernel: status %d\n", status);
    std::exit(1);
  }
}

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

// All work takes turns in every round, so that a noisy spell hits all alike.
void measure(const Unit &unit, int rounds, const std::vector<uint16_t> &source) {
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

  std::vector<Row> table;
  table.push_back({"memcpy", [&] { std::memcpy(copy.data(), source.data(), bytes); }, {}});
  const char *names[] = {"scalar", "avx2", "avx512"};
  for (int t = SPARKFP4_SCALAR; t <= SPARKFP4_AVX512; t++) {
    sparkfp4_tier tier = static_cast<sparkfp4_tier>(t);
    if (!sparkfp4_has_tier(tier)) {
      continue;
    }

    auto amax = [&, tier] {
      float result;
      check(sparkfp4_amax(tier, SPARKFP4_BF16, &all, 1, &result, &position));
    };
    auto encode = [&, tier](sparkfp4_recipe recipe, bool with_sums) {
      sparkfp4_error_sums sums;
      float scale = recipe == SPARKFP4_MODELOPT ? largest / 2688 : 2688 / largest;
      check(sparkfp4_encode(tier, recipe, SPARKFP4_BF16, &rows, 1, kCols, scale, packed.data(), scales.data(),
                            with_sums ? &sums : nullptr, &position));
    };
    std::string name = names[t];
    table.push_back({name + " amax", amax, {}});
    table.push_back({name + " encode", [=] { encode(SPARKFP4_MODELOPT, false); }, {}});
    table.push_back({name + " encode, compressed-tensors", [=] { encode(SPARKFP4_COMPRESSED_TENSORS, false); }, {}});
    table.push_back({name + " encode + sums", [=] { encode(SPARKFP4_MODELOPT, true); }, {}});
    table.push_back({name + " amax, encode + sums", [=] {
                       amax();
                       encode(SPARKFP4_MODELOPT, true);
                     },
                     {}});
  }

  int repeats = static_cast<int>(std::max<int64_t>(1, (16 << 20) / bytes));
  for (int round = -1; round < rounds; round++) {
    for (Row &row : table) {
      double seconds = seconds_of(row.run, repeats);
      if (round >= 0) {
        row.seconds.push_back(seconds);
      }
    }
  }

  std::printf("\n%s, %.1f MB\n\n| work | GB/s of bf16, median of %d | best |\n| --- | --- | --- |\n", unit.title,
              bytes / 1e6, rounds);
  for (Row &row : table) {
    std::sort(row.seconds.begin(), row.seconds.end());
    std::printf("| %s | %.2f | %.2f |\n", row.work.c_str(), bytes / kGiga / row.seconds[row.seconds.size() / 2],
                bytes / kGiga / row.seconds[0]);
  }
}

}  // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: sparkfp4-bench [ROUNDS]\n");
    return 2;
  }

  Unit large = {"From memory", 14336};
  Unit small = {"In the second-level cache", 128};
  std::vector<uint16_t> source = weights(large.rows * kCols);
  measure(large, rounds, source);
  measure(small, rounds, source);
  return 0;
}
