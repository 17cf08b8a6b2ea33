#include "check.h"

namespace {

uint16_t to_half(float x) {
  // Truncated: any value near x does.
  uint32_t bits = float_bits(x);
  uint32_t sign = bits >> 16 & 0x8000;
  int exponent = static_cast<int>(bits >> 23 & 0xff) - 112;
  uint32_t mantissa = bits & 0x7fffff;
  if (exponent <= 0) {
    return static_cast<uint16_t>(exponent < -10 ? sign : sign | (mantissa | 0x800000) >> (14 - exponent));
  }

  return static_cast<uint16_t>(exponent > 30 ? sign | 0x7bff : sign | exponent << 10 | mantissa >> 13);
}

void put(sparkfp4_dtype dtype, Bytes &out, int64_t i, float x) {
  if (dtype == SPARKFP4_F32) {
    std::memcpy(&out[4 * i], &x, 4);
  } else {
    uint16_t half = dtype == SPARKFP4_BF16 ? static_cast<uint16_t>(float_bits(x) >> 16) : to_half(x);
    std::memcpy(&out[2 * i], &half, 2);
  }
}

}  // namespace

Bytes draw(sparkfp4_dtype dtype, Kind kind, int64_t elements, int64_t cols, Random &random) {
  Bytes out(elements * element_bytes(dtype));
  float scale = 0.02f;
  for (int64_t i = 0; i < elements; i++) {
    if (cols > 0 && i % cols == 0 && kind == Kind::kRowScales) {
      scale = bits_float((87 + random.below(48)) << 23);
    }

    float x = random.normal() * scale;
    switch (kind) {
      case Kind::kBits: {
        // Any finite element; exponents of a block are near each other in three of four.
        uint32_t bits = static_cast<uint32_t>(random.next() >> 32);
        if (dtype == SPARKFP4_F32) {
          bits = (bits >> 23 & 0xff) == 0xff ? bits & 0xbfffffff : bits;
          std::memcpy(&out[4 * i], &bits, 4);
        } else {
          uint32_t top = dtype == SPARKFP4_BF16 ? 0x7f80 : 0x7c00;
          uint16_t half = static_cast<uint16_t>((bits & top) == top ? bits & 0xbfff : bits);
          std::memcpy(&out[2 * i], &half, 2);
        }

        continue;
      }
      case Kind::kSmall:
        // Subnormals and zeros of both signs.
        x = bits_float(random.below(1u << 24) | (random.below(2) << 31));
        x = random.below(4) == 0 ? (random.below(2) ? -0.0f : 0.0f) : x;
        break;
      case Kind::kTies: {
        static const float kPoints[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f, 0.0f, 1.5f, 4.0f, 7.0f};
        x = kPoints[random.below(12)] * (random.below(2) ? 0.0625f : -0.0625f);
        break;
      }
      case Kind::kSparse:
        x = random.below(16) == 0 ? x : (random.below(2) ? 0.0f : -0.0f);
        x = random.below(1000) == 0 ? x * 100 : x;
        break;
      default:
        break;
    }

    put(dtype, out, i, x);
  }

  return out;
}

namespace {

void require_same(const Bytes &expected, const Bytes &actual, size_t block_bytes, const std::string &what) {
  if (expected.size() == actual.size() &&
      (expected.empty() || std::memcmp(expected.data(), actual.data(), expected.size()) == 0)) {
    return;
  }

  size_t i = 0;
  while (i < expected.size() && i < actual.size() && expected[i] == actual[i]) {
    i++;
  }

  fail(what + " of block " + std::to_string(i / block_bytes) + ", byte " + std::to_string(i) + " of " +
       std::to_string(expected.size()) + ": " + std::to_string(expected[i]) + " and " + std::to_string(actual[i]));
}

}  // namespace

void require_same(const Encoded &expected, const Encoded &actual, const std::string &what) {
  if (expected.status != actual.status) {
    fail(what + ": status " + std::to_string(expected.status) + " and " + std::to_string(actual.status));
  }

  if (expected.status == SPARKFP4_CUDA_NON_FINITE) {
    const sparkfp4_position &a = expected.position;
    const sparkfp4_position &b = actual.position;
    bool same = a.value != a.value ? b.value != b.value : a.value == b.value;
    if (a.segment != b.segment || a.index != b.index || !same) {
      fail(what + ": position " + std::to_string(a.segment) + ", " + std::to_string(a.index) + " and " +
           std::to_string(b.segment) + ", " + std::to_string(b.index));
    }
  }

  if (expected.status != SPARKFP4_CUDA_OK) {
    return;
  }

  require_same(expected.scales, actual.scales, 1, what + ": scale");
  require_same(expected.packed, actual.packed, 8, what + ": codes");
  for (size_t i = 0; i < expected.sums.size(); i++) {
    double a[2] = {expected.sums[i].squares, expected.sums[i].squared_errors};
    double b[2] = {actual.sums[i].squares, actual.sums[i].squared_errors};
    for (int j = 0; j < 2; j++) {
      bool nan = a[j] != a[j] && b[j] != b[j];
      if (!nan && std::memcmp(a + j, b + j, sizeof(double)) != 0) {
        char words[128];
        std::snprintf(words, sizeof words, ": sum %d of segment %zu: %a and %a", j, i, a[j], b[j]);
        fail(what + words);
      }
    }
  }

  if (expected.requantized != actual.requantized) {
    fail(what + ": requantized " + std::to_string(expected.requantized) + " and " + std::to_string(actual.requantized));
  }
}

Encoded Results::read() const {
  sparkfp4_cuda_outcome found;
  Bytes bytes = outcome.read();
  std::memcpy(&found, bytes.data(), sizeof found);
  Encoded encoded = {};
  encoded.status = static_cast<sparkfp4_cuda_status>(found.status);
  encoded.position = found.non_finite;
  encoded.requantized = found.requantized;
  encoded.amax = found.amax;
  encoded.packed = packed.read();
  encoded.scales = scales.read();
  bytes = sums.read();
  encoded.sums.resize(bytes.size() / sizeof(sparkfp4_error_sums));
  std::memcpy(encoded.sums.data(), bytes.data(), bytes.size());
  workspace.read();
  return encoded;
}
