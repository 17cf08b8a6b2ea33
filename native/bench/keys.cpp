// MXFP4 keys by tier, beside memcpy of the bytes that they move.
#include <cstring>
#include <random>

#include "harness.h"
#include "sparkfp4_keys.h"

namespace {

constexpr int64_t kDim = 128;
constexpr int64_t kTokens = 64;
constexpr int64_t kPageBytes = kTokens * (kDim / 2 + kDim / 32);

void measure_keys(const char *title, int64_t tokens, int rounds) {
  std::vector<uint16_t> keys(tokens * kDim);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  for (uint16_t &key : keys) {
    float x = normal(random);
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    key = static_cast<uint16_t>(bits >> 16);
  }

  std::vector<int64_t> slots(tokens);
  for (int64_t i = 0; i < tokens; i++) {
    slots[i] = i;
  }

  int64_t bytes_in = tokens * kDim * 2;
  int64_t bytes_out = tokens / kTokens * kPageBytes;
  std::vector<unsigned char> cache(bytes_out);
  std::vector<unsigned char> copy((bytes_in + bytes_out) / 2);
  std::vector<float> weight(kDim, 1.25f);
  std::vector<float> bias(kDim, 0.125f);
  sparkfp4_pages pages = {cache.data(), tokens / kTokens, kTokens, kPageBytes};
  sparkfp4_key_form forms[] = {
      {kDim, nullptr, nullptr, 0, 0, 0, SPARKFP4_CEIL},
      {kDim, weight.data(), bias.data(), 1e-6f, 0, 0, SPARKFP4_CEIL},
      {kDim, weight.data(), bias.data(), 1e-6f, 1, 1, SPARKFP4_CEIL},
      {kDim, weight.data(), bias.data(), 1e-6f, 0, 0, SPARKFP4_BEST_OF_TWO},
  };
  const char *names[] = {"no norm", "LayerNorm", "LayerNorm, bf16, Hadamard", "LayerNorm, best of two"};

  std::vector<Work> table;
  // As much read and written together as a key's source and page bytes.
  table.emplace_back("memcpy", 0, [&] { std::memcpy(copy.data(), keys.data(), copy.size()); });
  const char *tiers[] = {"scalar", "avx2", "avx512"};
  for (int t = SPARKFP4_SCALAR; t <= SPARKFP4_AVX512; t++) {
    sparkfp4_tier tier = static_cast<sparkfp4_tier>(t);
    if (!is_measured(tier)) {
      continue;
    }

    for (int f = 0; f < 4; f++) {
      table.emplace_back(std::string(tiers[t]) + " " + names[f], 0, [&, tier, f] {
        int64_t bad;
        check(sparkfp4_key_insert(tier, &forms[f], SPARKFP4_BF16, keys.data(), tokens, slots.data(), &pages, &bad));
      });
    }
  }

  measure(table, rounds, static_cast<int>(std::max<int64_t>(1, (16 << 20) / bytes_in)));
  double moved = static_cast<double>(bytes_in + bytes_out);
  std::printf("\n%s, %lld keys of 128 bf16, pages of 64\n\n| work | 10^6 keys/s, median of %d | GB/s read and written | "
              "share of memcpy |\n| --- | --- | --- | --- |\n",
              title, static_cast<long long>(tokens), rounds);
  for (const Work &work : table) {
    std::printf("| %s | %.1f | %.2f | %.0f %% |\n", work.name.c_str(), tokens / 1e6 / work.median(),
                moved / kGiga / work.median(), 100 * table[0].median() / work.median());
  }
}

}  // namespace

void bench_keys(int rounds) {
  measure_keys("From memory", 1 << 18, rounds);
  measure_keys("In the second-level cache", 1 << 12, rounds);
}
