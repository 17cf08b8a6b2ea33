// Rates of the CUDA kernels beside the device's own copy. Prints Markdown tables.
// usage: sparkfp4-cuda-bench [ROUNDS [HOST_ROUNDS [NAME]]]      exit status 77 where there is no device
// NAME: only the works of weights in device memory that have it in their names, and the copy.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sparkfp4_cuda.h"

// Keys, queries and latents, beside the device's copy of as many bytes.
void bench_keys(int rounds);

namespace {

constexpr int64_t kCols = 7168;
constexpr double kGiga = 1e9;

void check(int error, const char *what) {
  if (error != 0) {
    std::fprintf(stderr, "Cannot %s: %d, %s\n", what, error, sparkfp4_cuda_error());
    std::exit(1);
  }
}

unsigned char *device_bytes(int64_t bytes) {
  unsigned char *memory;
  check(cudaMalloc(reinterpret_cast<void **>(&memory), bytes), "allocate device memory");
  return memory;
}

// Gaussian weights of deviation 0.02, as bfloat16; repeated, so that a bench begins soon.
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

// As many units as make a multiple of the second-level cache, which take turns.
struct Units {
  int64_t rows;  // of each of two segments
  int count;
  std::vector<unsigned char *> bf16;
  std::vector<unsigned char *> fp8;
  std::vector<unsigned char *> f32_scales;
  std::vector<unsigned char *> e8m0_scales;
  std::vector<unsigned char *> bf16_scales;
  std::vector<unsigned char *> packed;
  std::vector<unsigned char *> scales;
  unsigned char *workspace;
  unsigned char *outcome;
  sparkfp4_error_sums *sums;
  float *importance;
  float amax;

  int64_t elements() const { return 2 * rows * kCols; }

  Units(int64_t rows, int count) : rows(rows), count(count), amax(0) {
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

  ~Units() {
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

  static unsigned char *copied(const void *from, int64_t bytes) {
    unsigned char *memory = device_bytes(bytes);
    check(cudaMemcpy(memory, from, bytes, cudaMemcpyHostToDevice), "copy to the device");
    return memory;
  }
};

struct Work {
  std::string name;
  double bytes;  // an element, read and written
  std::function<int(int unit)> run;
  int repeats;
  std::vector<double> seconds;
};

class Bench {
 public:
  Bench(Units &units, int rounds, std::string only) : units_(units), rounds_(rounds), only_(std::move(only)) {
    check(cudaStreamCreate(&stream_), "create a stream");
    check(cudaEventCreate(&start_), "create an event");
    check(cudaEventCreate(&end_), "create an event");
  }

  void add(const std::string &name, double bytes, std::function<int(int)> run, int repeats = 0) {
    if (!works_.empty() && name.find(only_) == std::string::npos) {
      return;
    }

    works_.push_back({name, bytes, std::move(run), repeats == 0 ? units_.count : repeats, {}});
  }

  void run(const char *title) {
    for (int round = -1; round < rounds_; round++) {
      for (Work &work : works_) {
        check(cudaEventRecord(start_, stream_), "record");
        for (int i = 0; i < work.repeats; i++) {
          check(work.run(i % units_.count), work.name.c_str());
        }

        check(cudaEventRecord(end_, stream_), "record");
        check(cudaEventSynchronize(end_), "synchronize");
        float milliseconds;
        check(cudaEventElapsedTime(&milliseconds, start_, end_), "read the time");
        if (round >= 0) {
          work.seconds.push_back(milliseconds * 1e-3 / work.repeats);
        }
      }
    }

    double elements = static_cast<double>(units_.elements());
    double copy = 0;
    std::printf("\n%s: units of %.1f million elements, [2 x %ld, %ld]\n\n", title, elements / 1e6,
                static_cast<long>(units_.rows), static_cast<long>(kCols));
    std::printf("| work | bytes moved an element | microseconds | 10^9 elements/s | GB/s moved | of the copy's |\n");
    std::printf("| --- | --- | --- | --- | --- | --- |\n");
    for (Work &work : works_) {
      std::sort(work.seconds.begin(), work.seconds.end());
      double median = work.seconds[work.seconds.size() / 2];
      double moved = work.bytes * elements / kGiga / median;
      copy = copy == 0 ? moved : copy;
      std::printf("| %s | %.4f | %.1f | %.0f | %.0f | %.1f %% |\n", work.name.c_str(), work.bytes, 1e6 * median,
                  elements / kGiga / median, moved, 100 * moved / copy);
    }

    std::fflush(stdout);
  }

  void plain(bool searches) {
    add("copy on the device", 4, [this](int i) {
      return cudaMemcpyAsync(units_.packed[i], units_.bf16[i], 2 * units_.elements(), cudaMemcpyDeviceToDevice,
                             stream_);
    });
    add("BF16 amax", 2, [this](int i) {
      sparkfp4_segment segments[2];
      segments_of(i, units_.elements() / 2, segments);
      return sparkfp4_cuda_enqueue_amax(SPARKFP4_BF16, segments, 2, outcome(), units_.workspace, stream_);
    });
    for (bool with_sums : {false, true}) {
      std::string and_sums = with_sums ? " and error sums" : "";
      add("BF16 encode" + and_sums, 2.5625, [=](int i) {
        return encode(i, SPARKFP4_MODELOPT, SPARKFP4_RTN, units_.amax / 2688, with_sums);
      });
      add("BF16 amax and encode of a unit" + and_sums, 4.5625, [=](int i) {
        return encode(i, SPARKFP4_MODELOPT, SPARKFP4_RTN, 0, with_sums);
      });
    }

    add("BF16 encode, compressed-tensors", 2.5625, [=](int i) {
      return encode(i, SPARKFP4_COMPRESSED_TENSORS, SPARKFP4_RTN, 2688 / units_.amax, false);
    });
    add("BF16 encode where quotients tie (scale 2^-13)", 2.5625, [=](int i) {
      return encode(i, SPARKFP4_MODELOPT, SPARKFP4_RTN, 0x1p-13f, false);
    });
    sparkfp4_scheme fp8 = {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 128, 128};
    sparkfp4_scheme int4 = {SPARKFP4_INT4, SPARKFP4_SCALE_BF16, 1, 32};
    sparkfp4_scheme mxfp4 = {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32};
    add("FP8 128x128 amax", 1, [=](int i) {
      sparkfp4_quantized_segment segments[2];
      quantized_of(i, fp8, segments);
      return sparkfp4_cuda_enqueue_quantized_amax(&fp8, segments, 2, kCols, outcome(), units_.workspace, stream_);
    });
    for (bool with_sums : {false, true}) {
      std::string and_sums = with_sums ? " and error sums" : "";
      add("FP8 128x128 encode" + and_sums, 1.5625,
          [=](int i) { return encode_quantized(i, fp8, SPARKFP4_RTN, 448 * 2e-4f / 2688, with_sums); });
    }

    add("FP8 128x128 amax and encode of a unit", 2.5625,
        [=](int i) { return encode_quantized(i, fp8, SPARKFP4_RTN, 0, false); });
    add("INT4 groups of 32 encode", 0.5625 + 0.5625,
        [=](int i) { return encode_quantized(i, int4, SPARKFP4_RTN, 1e-3f, false); });
    add("MXFP4 encode by amax", 0.53125 + 0.5625,
        [=](int i) { return encode_quantized(i, mxfp4, SPARKFP4_RTN, 1e-5f, false); });
    for (bool with_sums : {false, true}) {
      std::string and_sums = with_sums ? " and error sums" : "";
      add("MXFP4 cast" + and_sums, 0.53125 + 0.5625, [=](int i) {
        sparkfp4_quantized_segment segments[2];
        quantized_of(i, mxfp4, segments);
        return sparkfp4_cuda_enqueue_cast_mxfp4(SPARKFP4_MODELOPT, segments, 2, kCols, -8, units_.packed[i],
                                                units_.scales[i], with_sums ? units_.sums : nullptr, outcome(),
                                                units_.workspace, stream_);
      });
    }

    add("FP8 128x128 to BF16", 3, [=](int i) {
      sparkfp4_quantized_segment segment = {units_.fp8[i], units_.f32_scales[i], 2 * units_.rows};
      return sparkfp4_cuda_enqueue_dequantize_bf16(&fp8, &segment, kCols, units_.packed[i], outcome(),
                                                   units_.workspace, stream_);
    });
    if (!searches) {
      return;
    }

    const char *names[] = {"", "four-over-six", "sweep", "weighted, diagonal", "weighted, Hessian"};
    for (int search = SPARKFP4_FOUR_OVER_SIX; search <= SPARKFP4_WEIGHTED_HESSIAN; search++) {
      add(std::string("BF16 encode, ") + names[search], 2.5625,
          [=](int i) {
            return encode(i, SPARKFP4_MODELOPT, static_cast<sparkfp4_search>(search), units_.amax / 1536, false);
          },
          search == SPARKFP4_WEIGHTED_HESSIAN ? 1 : 0);
    }

    add("BF16 amax and encode of a unit, sweep, error sums", 4.5625,
        [=](int i) { return encode(i, SPARKFP4_MODELOPT, SPARKFP4_SWEEP, 0, true); });
    add("FP8 128x128 encode, sweep", 1.5625,
        [=](int i) { return encode_quantized(i, fp8, SPARKFP4_SWEEP, 448 * 2e-4f / 1536, false); });
  }

 private:
  sparkfp4_cuda_outcome *outcome() const { return reinterpret_cast<sparkfp4_cuda_outcome *>(units_.outcome); }

  void segments_of(int i, int64_t count, sparkfp4_segment *segments) const {
    segments[0] = {units_.bf16[i], count};
    segments[1] = {units_.bf16[i] + units_.elements(), count};
  }

  void quantized_of(int i, const sparkfp4_scheme &scheme, sparkfp4_quantized_segment *segments) const {
    const unsigned char *scales = scheme.scales == SPARKFP4_SCALE_F32    ? units_.f32_scales[i]
                                  : scheme.scales == SPARKFP4_SCALE_BF16 ? units_.bf16_scales[i]
                                                                         : units_.e8m0_scales[i];
    int64_t half = units_.elements() / 2;
    int64_t codes = scheme.codes == SPARKFP4_E4M3 ? half : half / 2;
    int64_t of_scales = scheme.scales == SPARKFP4_SCALE_F32    ? half / 128 / 128 * 4
                        : scheme.scales == SPARKFP4_SCALE_BF16 ? half / 32 * 2
                                                               : half / 32;
    segments[0] = {units_.fp8[i], scales, units_.rows};
    segments[1] = {units_.fp8[i] + codes, scales + of_scales, units_.rows};
  }

  int encode(int i, sparkfp4_recipe recipe, sparkfp4_search search, float scale, bool with_sums) const {
    sparkfp4_segment segments[2];
    segments_of(i, units_.rows, segments);
    sparkfp4_cuda_choice choice = {search, search >= SPARKFP4_WEIGHTED ? units_.importance : nullptr};
    sparkfp4_error_sums *sums = with_sums ? units_.sums : nullptr;
    if (scale == 0) {
      return sparkfp4_cuda_enqueue_encode_unit(recipe, &choice, SPARKFP4_BF16, segments, 2, kCols, units_.packed[i],
                                               units_.scales[i], sums, outcome(), units_.workspace, stream_);
    }

    return sparkfp4_cuda_enqueue_encode(recipe, &choice, SPARKFP4_BF16, segments, 2, kCols, scale, units_.packed[i],
                                        units_.scales[i], sums, outcome(), units_.workspace, stream_);
  }

  int encode_quantized(int i, const sparkfp4_scheme &scheme, sparkfp4_search search, float scale,
                       bool with_sums) const {
    sparkfp4_quantized_segment segments[2];
    quantized_of(i, scheme, segments);
    sparkfp4_cuda_choice choice = {search, nullptr};
    sparkfp4_error_sums *sums = with_sums ? units_.sums : nullptr;
    if (scale == 0) {
      return sparkfp4_cuda_enqueue_quantized_encode_unit(SPARKFP4_MODELOPT, &choice, &scheme, segments, 2, kCols,
                                                         units_.packed[i], units_.scales[i], sums, outcome(),
                                                         units_.workspace, stream_);
    }

    return sparkfp4_cuda_enqueue_quantized_encode(SPARKFP4_MODELOPT, &choice, &scheme, segments, 2, kCols, scale,
                                                  units_.packed[i], units_.scales[i], sums, outcome(),
                                                  units_.workspace, stream_);
  }

  Units &units_;
  int rounds_;
  std::string only_;
  cudaStream_t stream_;
  cudaEvent_t start_;
  cudaEvent_t end_;
  std::vector<Work> works_;
};

// Units of host memory, by threads that have a context each.
void bench_host(int rounds) {
  constexpr int64_t kRows = 2048;
  constexpr int kUnits = 8;
  int64_t elements = 2 * kRows * kCols;
  std::vector<unsigned char> host = weights(elements);
  std::printf("\nHost memory: amax and encode of units of %.1f MB, with error sums\n\n", 2 * elements / 1e6);
  std::printf("| threads | search | GB/s of bf16, median of %d |\n| --- | --- | --- |\n", rounds);
  for (int threads : {1, 2, 4, 8, 16}) {
    std::vector<sparkfp4_cuda_context *> contexts(threads);
    std::vector<std::vector<unsigned char>> sources(threads, host);
    std::vector<std::vector<unsigned char>> packed(threads, std::vector<unsigned char>(elements / 2));
    std::vector<std::vector<unsigned char>> scales(threads, std::vector<unsigned char>(elements / 16));
    for (sparkfp4_cuda_context *&context : contexts) {
      check(sparkfp4_cuda_create(0, nullptr, &context), "create a context");
    }

    for (sparkfp4_search search : {SPARKFP4_RTN, SPARKFP4_SWEEP}) {
      std::vector<double> rates;
      for (int round = -1; round < rounds; round++) {
        auto start = std::chrono::steady_clock::now();
        std::vector<std::thread> all;
        for (int t = 0; t < threads; t++) {
          all.emplace_back([&, t] {
            sparkfp4_segment segments[2] = {{sources[t].data(), kRows}, {sources[t].data() + elements, kRows}};
            sparkfp4_cuda_choice choice = {search, nullptr};
            for (int i = 0; i < kUnits; i++) {
              sparkfp4_error_sums sums[2];
              float amax;
              sparkfp4_position position;
              check(sparkfp4_cuda_encode_unit(contexts[t], SPARKFP4_MODELOPT, &choice, SPARKFP4_BF16, segments, 2,
                                              kCols, packed[t].data(), scales[t].data(), sums, &amax, &position),
                    "encode");
            }
          });
        }

        for (std::thread &thread : all) {
          thread.join();
        }

        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        if (round >= 0) {
          rates.push_back(2.0 * elements * kUnits * threads / kGiga / seconds.count());
        }
      }

      std::sort(rates.begin(), rates.end());
      std::printf("| %d | %s | %.1f |\n", threads, search == SPARKFP4_RTN ? "rtn" : "sweep", rates[rates.size() / 2]);
    }

    for (sparkfp4_cuda_context *context : contexts) {
      sparkfp4_cuda_destroy(context);
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  int host_rounds = argc > 2 ? std::atoi(argv[2]) : std::min(rounds, 5);
  std::string only = argc > 3 ? argv[3] : "";
  if (rounds < 1 || host_rounds < 0) {
    std::fprintf(stderr, "usage: sparkfp4-cuda-bench [ROUNDS [HOST_ROUNDS [NAME]]]\n");
    return 2;
  }

  if (sparkfp4_cuda_device_count() == 0) {
    std::printf("skipped: this machine has no CUDA device\n");
    return 77;
  }

  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "read the device's properties");
  std::printf("%s, %d multiprocessors, %d MB of second-level cache\n", properties.name, properties.multiProcessorCount,
              properties.l2CacheSize >> 20);
  {
    Units experts(2048, 8);
    Bench bench(experts, rounds, only);
    bench.plain(true);
    bench.run("An expert's gate and up");
  }

  {
    Units large(32768, 2);
    Bench bench(large, rounds, only);
    bench.plain(true);
    bench.run("Large units");
  }

  if (only.empty()) {
    bench_keys(rounds);
  }

  if (host_rounds > 0) {
    bench_host(host_rounds);
  }

  return 0;
}
