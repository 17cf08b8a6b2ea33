// What the tests share: device memory, random data, comparisons with the kernels of the CPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "sparkfp4.h"
#include "sparkfp4_cuda.h"

using Bytes = std::vector<unsigned char>;

[[noreturn]] inline void fail(const std::string &message) {
  std::fprintf(stderr, "FAILED: %s (%s)\n", message.c_str(), sparkfp4_cuda_error());
  std::exit(1);
}

inline void require(bool condition, const char *message) {
  if (!condition) {
    fail(message);
  }
}

inline void check(cudaError_t error) {
  require(error == cudaSuccess, cudaGetErrorString(error));
}

// Bytes in device memory, at an offset from an aligned address, with guards around that nothing may write.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t size, size_t offset = 0, const void *content = nullptr) : size_(size), offset_(offset) {
    check(cudaMalloc(reinterpret_cast<void **>(&memory_), kGuard + offset + size + kGuard));
    check(cudaMemset(memory_, kPattern, kGuard + offset + size + kGuard));
    if (content != nullptr && size > 0) {
      check(cudaMemcpy(data(), content, size, cudaMemcpyHostToDevice));
    }
  }

  DeviceBytes(const DeviceBytes &) = delete;
  DeviceBytes(DeviceBytes &&other) noexcept : memory_(other.memory_), size_(other.size_), offset_(other.offset_) {
    other.memory_ = nullptr;
  }

  ~DeviceBytes() { cudaFree(memory_); }

  unsigned char *data() const { return memory_ + kGuard + offset_; }

  Bytes read() const {
    Bytes all(kGuard + offset_ + size_ + kGuard);
    check(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost));
    size_t start = kGuard + offset_;
    for (size_t i = 0; i < kGuard; i++) {
      require(all[i] == kPattern && all[all.size() - 1 - i] == kPattern, "a guard byte was written");
    }

    return Bytes(all.begin() + start, all.begin() + start + size_);
  }

 private:
  static constexpr size_t kGuard = 256;
  static constexpr int kPattern = 0xa5;
  unsigned char *memory_;
  size_t size_;
  size_t offset_;
};

// Quick and good enough bits.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1du;
  }

  uint32_t below(uint32_t bound) { return static_cast<uint32_t>((next() >> 32) * bound >> 32); }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

  float normal() {
    float sum = -6;
    for (int i = 0; i < 12; i++) {
      sum += uniform();
    }

    return sum;
  }

 private:
  uint64_t state_;
};

inline uint32_t float_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float bits_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr sparkfp4_dtype kTypes[] = {SPARKFP4_BF16, SPARKFP4_F16, SPARKFP4_F32};

// Of segments of so many rows.
inline int64_t elements_of(const std::vector<int64_t> &rows, int64_t cols) {
  return cols * std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

inline int element_bytes(sparkfp4_dtype dtype) {
  return dtype == SPARKFP4_F32 ? 4 : 2;
}

// How elements are drawn.
enum class Kind { kNormal, kRowScales, kBits, kSmall, kTies, kSparse, kCount };

// Finite elements.
Bytes draw(sparkfp4_dtype dtype, Kind kind, int64_t elements, int64_t cols, Random &random);

// Results of an encode.
struct Encoded {
  sparkfp4_cuda_status status;
  Bytes packed;
  Bytes scales;
  std::vector<sparkfp4_error_sums> sums;
  sparkfp4_position position;
  float amax;
  int64_t requantized;
};

// What an enqueued encode writes.
struct Results {
  DeviceBytes packed;
  DeviceBytes scales;
  DeviceBytes sums;
  DeviceBytes outcome;
  DeviceBytes workspace;

  Results(int64_t elements, size_t segments, size_t offset)
      : packed(elements / 2, offset), scales(elements / 16, offset), sums(segments * sizeof(sparkfp4_error_sums)),
        outcome(sizeof(sparkfp4_cuda_outcome)),
        workspace(sparkfp4_cuda_workspace_bytes(static_cast<int64_t>(segments))) {}

  sparkfp4_error_sums *device_sums() { return reinterpret_cast<sparkfp4_error_sums *>(sums.data()); }
  sparkfp4_cuda_outcome *device_outcome() { return reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data()); }

  Encoded read() const;
};

void require_same(const Encoded &expected, const Encoded &actual, const std::string &what);

// Every kernel once over little data: for a sanitizer, under which the others would take hours.
void test_each_plain(sparkfp4_cuda_context *context);
void test_each_quantized(sparkfp4_cuda_context *context);
void test_each_keys(sparkfp4_cuda_context *context);
void test_keys(sparkfp4_cuda_context *context);
void test_each_layouts(sparkfp4_cuda_context *context);
void test_layouts(sparkfp4_cuda_context *context);
void test_each_values(sparkfp4_cuda_context *context);
void test_values(sparkfp4_cuda_context *context);
void test_plain(sparkfp4_cuda_context *context);
void test_all_bf16(sparkfp4_cuda_context *context);
void test_quantized(sparkfp4_cuda_context *context);
void test_strips(sparkfp4_cuda_context *context);
void test_source_blocks(sparkfp4_cuda_context *context);
void test_each_mxfp4(sparkfp4_cuda_context *context);
void test_mxfp4(sparkfp4_cuda_context *context);
void test_search_limits(sparkfp4_cuda_context *context);
void test_search(sparkfp4_cuda_context *context);
void test_sums_in_order(sparkfp4_cuda_context *context);
void test_failures();
void test_large(sparkfp4_cuda_context *context);
// In a process of its own: what a bad address comes to. The exit status.
int bad_address();
void test_pinned(sparkfp4_cuda_context *context);
void test_threads();
int second_device();
