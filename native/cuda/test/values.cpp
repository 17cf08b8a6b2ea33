// Payloads of binary32: the device face beside values that the host computes by the table.
#include <cmath>
#include <initializer_list>
#include <limits>

#include "check.h"

namespace {

const float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

Bytes random_bytes(int64_t size, Random &random) {
  Bytes bytes(static_cast<size_t>(size));
  for (unsigned char &byte : bytes) {
    byte = static_cast<unsigned char>(random.next());
  }

  return bytes;
}

float e4m3(int byte) {
  int exponent = byte >> 3 & 0xf;
  int mantissa = byte & 7;
  float magnitude = (byte & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN()
                    : exponent == 0       ? std::ldexp(static_cast<float>(mantissa), -9)
                                          : std::ldexp(8.0f + static_cast<float>(mantissa), exponent - 10);
  return byte < 128 ? magnitude : -magnitude;
}

float e8m0(int byte) {
  return byte == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, byte - 127);
}

// Codes of so many blocks, whose scales have all bytes.
struct Blocks {
  Bytes codes;
  Bytes scales;

  Blocks(int64_t count, int elements, Random &random)
      : codes(random_bytes(count * elements / 2, random)), scales(random_bytes(count, random)) {}

  template <typename Factor>
  Bytes values(Factor factor) const {
    Bytes out(codes.size() * 2 * sizeof(float));
    size_t of_block = codes.size() / (scales.empty() ? 1 : scales.size());
    for (size_t i = 0; i < codes.size() * 2; i++) {
      float value = kValues[codes[i / 2] >> (4 * (i % 2)) & 0xf] * factor(scales[i / 2 / of_block]);
      uint32_t bits = std::isnan(value) ? 0x7fc00000u : float_bits(value);
      std::memcpy(out.data() + i * sizeof(float), &bits, sizeof bits);
    }

    return out;
  }
};

void nvfp4(int64_t count, size_t offset, sparkfp4_recipe recipe, float global, Random &random) {
  Blocks blocks(count, 16, random);
  DeviceBytes codes(blocks.codes.size(), offset, blocks.codes.data());
  DeviceBytes scales(blocks.scales.size(), offset, blocks.scales.data());
  Bytes expected = blocks.values([&](int scale) {
    return recipe == SPARKFP4_MODELOPT ? e4m3(scale) * global : e4m3(scale) / global;
  });
  DeviceBytes out(expected.size(), offset);
  require(sparkfp4_cuda_enqueue_nvfp4_values(recipe, codes.data(), scales.data(), count, global, out.data(),
                                             nullptr) == SPARKFP4_CUDA_OK,
          "NVFP4 is dequantized");
  check(cudaDeviceSynchronize());
  require(out.read() == expected, "values of NVFP4 are those of the table");
}

void mxfp4(int64_t count, size_t offset, Random &random) {
  Blocks blocks(count, 32, random);
  DeviceBytes codes(blocks.codes.size(), offset, blocks.codes.data());
  DeviceBytes scales(blocks.scales.size(), offset, blocks.scales.data());
  Bytes expected = blocks.values(e8m0);
  DeviceBytes out(expected.size(), offset);
  require(sparkfp4_cuda_enqueue_mxfp4_values(codes.data(), scales.data(), count, out.data(), nullptr) ==
              SPARKFP4_CUDA_OK,
          "MXFP4 is dequantized");
  check(cudaDeviceSynchronize());
  require(out.read() == expected, "values of MXFP4 are those of the table");
}

void rounds(std::initializer_list<int64_t> counts) {
  Random random(41);
  for (int64_t count : counts) {
    for (size_t offset : {0, 1, 2, 4, 8}) {
      for (float global : {1e-38f, 1.7e-3f, 0.3f, 3e38f}) {
        nvfp4(count, offset, SPARKFP4_MODELOPT, global, random);
        nvfp4(count, offset, SPARKFP4_COMPRESSED_TENSORS, global, random);
      }

      mxfp4(count, offset, random);
    }
  }
}

void refusals() {
  unsigned char some[64];
  auto nvfp4_status = [&](sparkfp4_recipe recipe, const void *codes, int64_t blocks, float global) {
    return sparkfp4_cuda_enqueue_nvfp4_values(recipe, codes, some, blocks, global, some, nullptr);
  };
  const float infinity = std::numeric_limits<float>::infinity();
  for (float global : {0.0f, -1.0f, infinity, std::numeric_limits<float>::quiet_NaN()}) {
    require(nvfp4_status(SPARKFP4_MODELOPT, some, 1, global) == SPARKFP4_CUDA_INVALID, "no such global scale");
  }

  require(nvfp4_status(static_cast<sparkfp4_recipe>(2), some, 1, 1) == SPARKFP4_CUDA_INVALID, "no such recipe");
  require(nvfp4_status(SPARKFP4_MODELOPT, nullptr, 1, 1) == SPARKFP4_CUDA_INVALID, "no codes");
  require(nvfp4_status(SPARKFP4_MODELOPT, some, -1, 1) == SPARKFP4_CUDA_INVALID, "fewer than no blocks");
  require(sparkfp4_cuda_enqueue_mxfp4_values(some, nullptr, 1, some, nullptr) == SPARKFP4_CUDA_INVALID, "no scales");
  require(sparkfp4_cuda_enqueue_mxfp4_values(nullptr, nullptr, 0, nullptr, nullptr) == SPARKFP4_CUDA_OK,
          "no blocks are nothing to do");
}

}  // namespace

void test_each_values(sparkfp4_cuda_context *) {
  rounds({0, 1, 37});
}

void test_values(sparkfp4_cuda_context *) {
  refusals();
  rounds({0, 1, 3, 64, 255, 4097, 300001});
}
