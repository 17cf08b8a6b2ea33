// Rates of the CUDA kernels beside the device's own copy. Prints Markdown tables.
// usage: sparkfp4-cuda-bench [ROUNDS [HOST_ROUNDS [NAME]]]      exit status 77 where there is no device
// NAME: only the works of weights in device memory that have it in their names, and the copy.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "measure.h"
#include "sparkfp4_cuda.h"
#include "units.h"

// Keys, queries and latents, beside the device's copy of as many bytes.
void bench_keys(int rounds);
void bench_host(int rounds);

namespace {

constexpr double kGiga = 1e9;

struct UnitWork {
  std::string name;
  double bytes;  // an element, read and written
  std::function<int(int unit)> run;
  int repeats;
  std::vector<double> seconds;
};

class Bench {
 public:
  Bench(Units &units, int rounds, std::string only) : units_(units), rounds_(rounds), only_(std::move(only)) {
    require(cudaStreamCreate(&stream_), "create a stream");
    require(cudaEventCreate(&start_), "create an event");
    require(cudaEventCreate(&end_), "create an event");
  }

  void add(const std::string &name, double bytes, std::function<int(int)> run, int repeats = 0) {
    if (!works_.empty() && name.find(only_) == std::string::npos) {
      return;
    }

    works_.push_back({name, bytes, std::move(run), repeats == 0 ? units_.count : repeats, {}});
  }

  void run(const char *title) {
    for (int round = -1; round < rounds_; round++) {
      for (UnitWork &work : works_) {
        require(cudaEventRecord(start_, stream_), "record");
        for (int i = 0; i < work.repeats; i++) {
          require(work.run(i % units_.count), work.name.c_str());
        }

        require(cudaEventRecord(end_, stream_), "record");
        require(cudaEventSynchronize(end_), "synchronize");
        float milliseconds;
        require(cudaEventElapsedTime(&milliseconds, start_, end_), "read the time");
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
    for (UnitWork &work : works_) {
      double seconds = median(work.seconds);
      double moved = work.bytes * elements / kGiga / seconds;
      copy = copy == 0 ? moved : copy;
      std::printf("| %s | %.4f | %.1f | %.0f | %.0f | %.1f %% |\n", work.name.c_str(), work.bytes, 1e6 * seconds,
                  elements / kGiga / seconds, moved, 100 * moved / copy);
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
  std::vector<UnitWork> works_;
};

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
  require(cudaGetDeviceProperties(&properties, 0), "read the device's properties");
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
