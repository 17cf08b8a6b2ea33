#include "units.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "measure.h"

namespace {

unsigned char *device_bytes(int64_t bytes) {
  unsigned char *memory;
  require(cudaMalloc(reinterpret_cast<void **>(&memory), bytes), "allocate device memory");
  return memory;
}

unsigned char *copied(const void *from, int64_t bytes) {
  unsigned char *memory = device_bytes(bytes);
  require(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), "copy to the device");
  return memory;
}

}  // namespace

std::vector<unsigned char> weights(int64_t elements) {
  std::vector<unsigned char> data(2 * elements);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.02f);
  int64_t drawn = std::min<int64_t>(elements, 4 << 20);
  for (int64_t i = 0; i < drawn; i++) {
    float w = normal(random);
    std::memcpy(&data[2 * i], reinterpret_cast<unsigned char *>(&w) + 2, 2);
  }

  for (int64_t at = drawn; at < elements; at += drawn) {
    std::memcpy(&data[2 * at], data.data(), 2 * std::min(drawn, elements - at));
  }

  return data;
}

Units::Units(int64_t rows, int count) : rows(rows), count(count), amax(0) {
  std::vector<unsigned char> host = weights(elements());
  std::vector<unsigned char> codes(elements());
  for (int64_t i = 0; i < elements(); i++) {
    uint32_t bits = static_cast<uint32_t>(host[2 * i] | host[2 * i + 1] << 8) << 16;
    float w;
    std::memcpy(&w, &bits, 4);
    amax = std::fmax(amax, std::fabs(w));
    float scaled = std::fmin(std::fabs(w) * 4480 * 0x1p-120f, 448 * 0x1p-120f);
    std::memcpy(&bits, &scaled, 4);
    codes[i] = static_cast<unsigned char>((bits >> 20 & 0x7f) | (w < 0 ? 0x80 : 0));
  }

  std::vector<float> f32(elements() / 128);
  std::vector<unsigned char> e8m0(elements() / 32);
  std::vector<uint16_t> halves(elements() / 32);
  for (size_t i = 0; i < f32.size(); i++) {
    f32[i] = 1e-4f * (1 + (i % 7) / 8.0f + (i % 1001) * 1e-5f);
  }

  for (size_t i = 0; i < e8m0.size(); i++) {
    e8m0[i] = static_cast<unsigned char>(112 + i % 8);
    halves[i] = static_cast<uint16_t>(0x3c00 + i % 128);
  }

  for (int i = 0; i < count; i++) {
    bf16.push_back(copied(host.data(), 2 * elements()));
    fp8.push_back(copied(codes.data(), elements()));
    f32_scales.push_back(copied(f32.data(), static_cast<int64_t>(4 * f32.size())));
    e8m0_scales.push_back(copied(e8m0.data(), static_cast<int64_t>(e8m0.size())));
    bf16_scales.push_back(copied(halves.data(), static_cast<int64_t>(2 * halves.size())));
    packed.push_back(device_bytes(2 * elements()));
    scales.push_back(device_bytes(elements() / 16));
  }

  workspace = device_bytes(sparkfp4_cuda_workspace_bytes(2));
  outcome = device_bytes(sizeof(sparkfp4_cuda_outcome));
  sums = reinterpret_cast<sparkfp4_error_sums *>(device_bytes(2 * sizeof(sparkfp4_error_sums)));
  std::vector<float> h(16 * kCols);
  for (size_t i = 0; i < h.size(); i++) {
    h[i] = 0.1f + (i * 37 % 101) / 50.0f;
  }

  importance = reinterpret_cast<float *>(copied(h.data(), static_cast<int64_t>(4 * h.size())));
}

Units::~Units() {
  for (const auto *all : {&bf16, &fp8, &f32_scales, &e8m0_scales, &bf16_scales, &packed, &scales}) {
    for (unsigned char *memory : *all) {
      cudaFree(memory);
    }
  }

  cudaFree(workspace);
  cudaFree(outcome);
  cudaFree(sums);
  cudaFree(importance);
}
