// The proof of the factors by which CUDA's E2M1 codes of E4M3 elements are products in binary16.
//
// Factors that may go wrong are beside the ratios c / m of source scale and d for which a quotient is a midpoint: they
// are tried float by float, and at both ends of where factors are moved, each by many d; besides, any ratios. Under
// each, all elements of blocks of each scale are encoded as the kernel does and as the definition has it.
#include "../cuda/e4m3_factor.h"

#include <cstdio>
#include <random>

namespace {

using namespace sparkfp4;
using namespace sparkfp4::cuda;

constexpr int kElements = 127;
constexpr float kLargestQuotient = 6.375f;  // of a scale rounded down the most: 1 + 1 / 16

// The bits of the binary16 next to x >= 0, the even one of two.
uint32_t half_bits(float x) {
  int exponent = x < 0x1p-14f ? -14 : std::ilogb(x);
  uint32_t steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(x, 10 - exponent)));
  return steps + (static_cast<uint32_t>(exponent + 14) << 10);
}

float half_value(uint32_t bits) {
  uint32_t exponent = bits >> 10;
  float steps = static_cast<float>((bits & 0x3ff) + (exponent == 0 ? 0 : 0x400));
  return std::ldexp(steps, static_cast<int>(exponent == 0 ? 1 : exponent) - 25);
}

float next(float x, int count) { return bits_as<float>(bits_as<uint32_t>(x) + static_cast<uint32_t>(count)); }

// The device's reciprocals may be off by this much.
Factor find(float source_scale, float d, int ulps) {
  float step = d * next(1 / source_scale, ulps);
  NearSides sides = kNoNearSides;
  for (int midpoint = 1; midpoint <= 7; midpoint += 2) {
    float at = static_cast<float>(midpoint) * step;
    float element = nearest_element(at);
    sides = add_nearest(sides, midpoint, at, element, element * source_scale / d);
  }

  return make_factor(sides, source_scale * (1 / d));
}

struct Counts {
  long factors = 0;
  long even = 0;
  long none = 0;
  long blocks = 0;
};

template <bool kEven>
bool check_block(float source_scale, float d, uint32_t bits, uint32_t byte) {
  float own_d = std::ldexp(d, static_cast<int>(byte >> 3) - 7);
  uint32_t factor = factor_of(bits, byte);
  for (uint32_t code = 0; code < kElements; code++) {
    float quotient = e4m3_value(code) * source_scale / own_d;
    if (quotient > kLargestQuotient) {
      break;
    }

    float product = half_value(factor) * (e4m3_value(code) * 0x1p-8f);
    uint32_t found = round_products<kEven>(half_bits(product) * 0x00010001u, 1);
    uint32_t expected = e2m1_index(quotient);
    if ((found >> 9 & 0x7f) != expected || found >> 25 != expected) {
      std::printf("source scale %a, d %a: element %u is %u, not %u\n", source_scale, own_d, code, found >> 25,
                  expected);
      return false;
    }
  }

  return true;
}

// Whether a block of that scale can be: its largest element becomes 6 or so, within what a normal scale rounds.
bool is_possible(float source_scale, float d, uint32_t byte) {
  constexpr float kLeastQuotient = 5.6f;
  float own_d = std::ldexp(d, static_cast<int>(byte >> 3) - 7);
  for (uint32_t code = 1; code < kElements; code++) {
    float quotient = e4m3_value(code) * source_scale / own_d;
    if (quotient >= kLeastQuotient) {
      return quotient <= kLargestQuotient;
    }
  }

  return false;
}

bool check(float source_scale, float d, int ulps, Counts *counts) {
  constexpr uint32_t kLeastFactor = 0x0400;
  constexpr uint32_t kMostFactor = 0x7bff;
  Factor factor = find(source_scale, d, ulps);
  counts->factors++;
  counts->even += factor.even;
  counts->none += factor.bits == 0;
  for (uint32_t byte = 8; factor.bits != 0 && byte < 128; byte += 8) {
    if (!is_possible(source_scale, d, byte)) {
      continue;
    }

    counts->blocks++;
    uint32_t own = factor_of(factor.bits, byte);
    if (own < kLeastFactor || own > kMostFactor) {
      std::printf("source scale %a, d %a, scale byte %u: the factor is no normal number\n", source_scale, d, byte);
      return false;
    }

    // What does not tie is rounded by either.
    if (!check_block<true>(source_scale, d, factor.bits, byte) ||
        (!factor.even && !check_block<false>(source_scale, d, factor.bits, byte))) {
      return false;
    }
  }

  return true;
}

// Beside the ratio c / m, and where factors are moved no more.
bool check_beside(float ratio, float d, std::mt19937 &random, Counts *counts) {
  constexpr int kFloats = 8;
  constexpr float kEnds[] = {1 - kNear, 1, 1 + kNear};
  for (float end : kEnds) {
    for (int i = -kFloats; i <= kFloats; i++) {
      if (!check(next(ratio * end * d, i), d, static_cast<int>(random() % 5) - 2, counts)) {
        return false;
      }
    }
  }

  return true;
}

}  // namespace

int main() {
  constexpr int kRounds = 16;
  constexpr int kAny = 20000;
  std::mt19937 random(1);
  Counts beside;
  Counts any;
  auto mantissa = [&] { return bits_as<float>(static_cast<uint32_t>(0x3f800000u | (random() & 0x7fffffu))); };
  for (int round = 0; round < kRounds; round++) {
    // Some with few bits, as powers of two times a scale have.
    float d = round % 4 == 0 ? 1 + static_cast<float>(random() % 64) / 64 : mantissa();
    for (int c = 1; c <= 7; c += 2) {
      for (int m = 8; m <= 15; m++) {
        float ratio = std::ldexp(static_cast<float>(c) / static_cast<float>(m), static_cast<int>(random() % 7) - 3);
        if (!check_beside(ratio, d, random, &beside)) {
          return 1;
        }
      }
    }
  }

  for (int i = 0; i < kAny; i++) {
    if (!check(std::ldexp(mantissa(), static_cast<int>(random() % 9) - 4), mantissa(), 0, &any)) {
      return 1;
    }
  }

  std::printf("beside ties: %ld factors, %ld even, none %ld times, %ld blocks; any: %ld factors, none %ld times, %ld "
              "blocks\n",
              beside.factors, beside.even, beside.none, beside.blocks, any.factors, any.none, any.blocks);
  if (beside.even == 0 || beside.none * 10 > beside.factors || beside.blocks < beside.factors || any.none != 0 ||
      any.blocks < any.factors) {
    std::printf("too few factors or blocks were tried\n");
    return 1;
  }

  return 0;
}
