#include "measure.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "sparkfp4_cuda.h"

namespace {

constexpr double kGiga = 1e9;

// Seconds of what is enqueued.
class Timer {
 public:
  explicit Timer(cudaStream_t stream) : stream_(stream) {
    require(cudaEventCreate(&start_), "create an event");
    require(cudaEventCreate(&end_), "create an event");
  }
  ~Timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(end_);
  }
  Timer(const Timer &) = delete;
  Timer &operator=(const Timer &) = delete;

  double time(const std::function<int()> &work) {
    require(cudaEventRecord(start_, stream_), "record");
    require(work(), "run");
    require(cudaEventRecord(end_, stream_), "record");
    require(cudaEventSynchronize(end_), "synchronize");
    float milliseconds;
    require(cudaEventElapsedTime(&milliseconds, start_, end_), "read the time");
    return milliseconds * 1e-3;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_;
  cudaEvent_t end_;
};

}  // namespace

void require(int status, const char *what) {
  if (status != 0) {
    std::fprintf(stderr, "Cannot %s: %d, %s\n", what, status, sparkfp4_cuda_error());
    std::exit(1);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const std::vector<Work> &works, int rounds, cudaStream_t stream, const unsigned char *from,
             unsigned char *to, const char *items) {
  Timer timer(stream);
  std::vector<std::vector<double>> seconds(works.size());
  std::vector<std::vector<double>> copies(works.size());
  for (int round = -1; round < rounds; round++) {
    for (size_t i = 0; i < works.size(); i++) {
      double of_work = timer.time(works[i].run);
      double of_copy = timer.time(
          [&] { return cudaMemcpyAsync(to, from, works[i].bytes / 2, cudaMemcpyDeviceToDevice, stream); });
      if (round >= 0) {
        seconds[i].push_back(of_work);
        copies[i].push_back(of_copy);
      }
    }
  }

  std::string of_items = items == nullptr ? "" : std::string(" 10^9 ") + items + "/s |";
  std::printf("| work | microseconds |%s GB/s moved | GB/s of the copy | of the copy's |\n", of_items.c_str());
  std::printf("| --- | --- |%s --- | --- | --- |\n", items == nullptr ? "" : " --- |");
  for (size_t i = 0; i < works.size(); i++) {
    double of_work = median(seconds[i]);
    double of_copy = median(copies[i]);
    double giga = static_cast<double>(works[i].bytes) / kGiga;
    std::printf("| %s | %.1f |", works[i].name.c_str(), 1e6 * of_work);
    if (items != nullptr) {
      std::printf(" %.2f |", static_cast<double>(works[i].items) / kGiga / of_work);
    }

    std::printf(" %.0f | %.0f | %.1f %% |\n", giga / of_work, giga / of_copy, 100 * of_copy / of_work);
  }

  std::fflush(stdout);
}
