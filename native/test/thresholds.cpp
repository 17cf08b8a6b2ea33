// The proof of the thresholds that a vector tier compares with instead of dividing.
//
// Where the midpoints of E2M1 times d lie among the floats depends on the 2^23 mantissas of d alone as long as nothing
// is subnormal or overflows. So all of them are tried at one exponent, and a sample of them at each other exponent of
// the range that the tier trusts: each threshold and the float after it are divided by d. passes() must tell the two
// apart, too.
#include <cstdio>
#include <utility>

#include ISA_HEADER
#include "thresholds.h"

namespace {

using namespace sparkfp4;

constexpr int kWidth = ISA::kWidth;
constexpr uint32_t kOne = 0x3f800000;
constexpr uint32_t kMantissas = 1 << 23;

// Whether a quotient has left what lies below threshold i.
bool is_above(float quotient, int i) {
  return i == 0 ? quotient > 0 : e2m1_index(quotient) >= static_cast<uint32_t>(i);
}

template <int... kIndices>
bool pass_alike(const ISA::Int *bits, ISA::Float d, std::integer_sequence<int, kIndices...>) {
  auto above = [&](int i) { return ISA::as_float(ISA::add_int(bits[i], ISA::set(1))); };
  return ((ISA::lanes(passes<ISA, 1 + kIndices>(ISA::as_float(bits[1 + kIndices]), d)) == 0 &&
           ISA::all(passes<ISA, 1 + kIndices>(above(1 + kIndices), d))) &&
          ...);
}

bool check(const uint32_t *d_bits) {
  float d[kWidth];
  for (int lane = 0; lane < kWidth; lane++) {
    d[lane] = bits_as<float>(d_bits[lane]);
  }

  ISA::Int bits[kThresholds];
  thresholds<ISA>(ISA::as_float(ISA::load(reinterpret_cast<const unsigned char *>(d))), bits);
  ISA::Float factors = ISA::as_float(ISA::load(reinterpret_cast<const unsigned char *>(d)));
  // Codes are told by it, whose limits are narrower.
  if (d[0] >= 0x1p-60f && d[0] <= 0x1p60f &&
      !pass_alike(bits, factors, std::make_integer_sequence<int, kThresholds - 1>())) {
    std::printf("passes() is wrong beside a threshold of d from %a\n", d[0]);
    return false;
  }

  for (int i = 0; i < kThresholds; i++) {
    uint32_t last_below[kWidth];
    std::memcpy(last_below, &bits[i], sizeof last_below);
    for (int lane = 0; lane < kWidth; lane++) {
      float below = bits_as<float>(last_below[lane]) / d[lane];
      float above = bits_as<float>(last_below[lane] + 1) / d[lane];
      if (is_above(below, i) || !is_above(above, i)) {
        std::printf("threshold %d of d = %a: %a gives %a, the next float %a\n", i, d[lane],
                    bits_as<float>(last_below[lane]), below, above);
        return false;
      }
    }
  }

  return true;
}

// d from first on, step apart, all of one exponent.
bool check_binade(uint32_t first, uint32_t step) {
  uint32_t d[kWidth];
  int lanes = 0;
  for (uint32_t mantissa = 0; mantissa < kMantissas; mantissa += step) {
    d[lanes++] = first + mantissa;
    if (lanes == kWidth) {
      lanes = 0;
      if (!check(d)) {
        return false;
      }
    }
  }

  return true;
}

}  // namespace

int main() {
  if (!__builtin_cpu_supports(ISA_FEATURE)) {
    std::printf("this processor has no %s\n", ISA_FEATURE);
    return 77;
  }

  if (!check_binade(kOne, 1)) {
    return 1;
  }

  uint32_t first = bits_as<uint32_t>(kMinFactor);
  uint32_t end = bits_as<uint32_t>(kMaxFactor);
  for (uint32_t exponent = first; exponent < end; exponent += kMantissas) {
    if (!check_binade(exponent, 4099)) {
      return 1;
    }
  }

  uint32_t largest[kWidth];
  for (uint32_t &d : largest) {
    d = end;
  }

  return check(largest) ? 0 : 1;
}
