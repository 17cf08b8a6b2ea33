// CUDA's values of codes beside their table: all words of four codes, under factors of every kind. Needs no device: the
// byte permutation and the casts are played.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "played_device.h"

namespace {

float __uint_as_float(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t __float_as_uint(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float __fmul_rn(float a, float b) { return a * b; }

}  // namespace

#include "../cuda/code_values.cuh"

using namespace sparkfp4::cuda;

namespace {

const float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

void require_same(uint32_t expected, uint32_t actual, const char *what, uint32_t of) {
  if (expected != actual) {
    std::fprintf(stderr, "%s of %08x: %08x, not %08x\n", what, of, actual, expected);
    std::exit(1);
  }
}

// By the format's words: sign, four bits of exponent above 7, three of mantissa.
float e4m3_by_definition(uint32_t byte) {
  int exponent = byte >> 3 & 0xf;
  int mantissa = byte & 7;
  float magnitude = exponent == 0    ? std::ldexp(static_cast<float>(mantissa), -9)
                    : (byte & 0x7f) == 0x7f ? NAN
                                            : std::ldexp(8.0f + mantissa, exponent - 10);
  return byte < 128 ? magnitude : -magnitude;
}

uint32_t canonical(float value) { return std::isnan(value) ? 0x7fc00000u : __float_as_uint(value); }

void require_words(float d) {
  for (uint32_t codes = 0; codes < 0x10000; codes++) {
    uint32_t words[4];
    // what is above the four codes has no say
    stored_four(codes | codes * 0x9e370000u, d, words);
    for (int i = 0; i < 4; i++) {
      require_same(canonical(kValues[codes >> (4 * i) & 0xf] * d), words[i], "a value", codes);
    }
  }
}

}  // namespace

int main() {
  for (uint32_t byte = 0; byte < 256; byte++) {
    require_same(canonical(e4m3_by_definition(byte)), canonical(e4m3(byte)), "E4M3", byte);
    float power = byte == 0xff ? NAN : std::ldexp(1.0f, static_cast<int>(byte) - 127);
    require_same(canonical(power), canonical(e8m0(byte)), "E8M0", byte);
  }

  // every scale of both formats, and global scales at which factors are subnormal, ordinary, infinite
  for (uint32_t byte = 0; byte < 256; byte++) {
    require_words(e8m0(byte));
    for (float global : {1e-38f, 1.7e-3f, 0.3f, 3e38f}) {
      if (byte % 7 == 0 || byte == 0x7f || byte == 0xff) {
        require_words(e4m3(byte) * global);
      }
    }
  }

  std::puts("the values are those of the table");
  return 0;
}
