// Rates of the host face on units of memory, by threads that have a context each.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "measure.h"
#include "sparkfp4_cuda.h"
#include "units.h"

void bench_host(int rounds);

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
      require(sparkfp4_cuda_create(0, nullptr, &context), "create a context");
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
              require(sparkfp4_cuda_encode_unit(contexts[t], SPARKFP4_MODELOPT, &choice, SPARKFP4_BF16, segments, 2,
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
          rates.push_back(2.0 * elements * kUnits * threads / 1e9 / seconds.count());
        }
      }

      std::printf("| %d | %s | %.1f |\n", threads, search == SPARKFP4_RTN ? "rtn" : "sweep", median(rates));
    }

    for (sparkfp4_cuda_context *context : contexts) {
      sparkfp4_cuda_destroy(context);
    }
  }
}
