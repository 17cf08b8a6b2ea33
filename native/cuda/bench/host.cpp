// Rates of the host face from the page cache: what a pipeline of tasks can have at most. Prints a Markdown table.
// usage: sparkfp4-cuda-host-bench FILE...      files of bfloat16, read once before; exit status 77 where there is no device
//
// As many threads as tasks, each with a context; each maps slabs of the files in turn, encodes them as units, and unmaps
// them.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "sparkfp4_cuda.h"

namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kCols = 8192;
constexpr int kRounds = 3;

void check(bool holds, const char *what) {
  if (!holds) {
    std::fprintf(stderr, "Cannot %s: %s\n", what, sparkfp4_cuda_error());
    std::exit(1);
  }
}

struct Slab {
  int file;
  int64_t offset;
};

struct Setting {
  int threads;
  int64_t slab;
  int64_t piece;
  bool pinned;
  sparkfp4_search search;
};

std::vector<Slab> slabs_of(const std::vector<int> &files, int64_t bytes) {
  std::vector<Slab> slabs;
  for (int file : files) {
    struct stat status;
    check(fstat(file, &status) == 0, "look at a file");
    for (int64_t at = 0; at + bytes <= status.st_size; at += bytes) {
      slabs.push_back({file, at});
    }
  }

  return slabs;
}

// Memory for a slab's packed codes and scales.
class Outputs {
 public:
  Outputs(int64_t slab, bool pinned) : pinned_(pinned), packed_bytes_(slab / 4) {
    int64_t bytes = packed_bytes_ + slab / 32;
    if (pinned) {
      check(sparkfp4_cuda_pin(0, bytes, &memory_) == SPARKFP4_CUDA_OK, "pin memory");
    } else {
      memory_ = std::calloc(bytes, 1);
    }
  }

  ~Outputs() {
    if (pinned_) {
      sparkfp4_cuda_unpin(0, memory_);
    } else {
      std::free(memory_);
    }
  }

  Outputs(const Outputs &) = delete;
  Outputs &operator=(const Outputs &) = delete;
  void *packed() const { return memory_; }
  void *scales() const { return static_cast<char *>(memory_) + packed_bytes_; }

 private:
  bool pinned_;
  int64_t packed_bytes_;
  void *memory_ = nullptr;
};

void encode(sparkfp4_cuda_context *context, const Setting &setting, const Slab &slab, const Outputs &outputs) {
  void *data = mmap(nullptr, setting.slab, PROT_READ, MAP_SHARED, slab.file, slab.offset);
  check(data != MAP_FAILED, "map a slab");
  sparkfp4_segment segment = {data, setting.slab / 2 / kCols};
  sparkfp4_cuda_choice choice = {setting.search, nullptr};
  sparkfp4_error_sums sums;
  sparkfp4_position position;
  float amax;
  check(sparkfp4_cuda_encode_unit(context, SPARKFP4_MODELOPT, &choice, SPARKFP4_BF16, &segment, 1, kCols,
                                  outputs.packed(), outputs.scales(), &sums, &amax, &position) == SPARKFP4_CUDA_OK,
        "encode");
  // As sparkfp4_let_go does.
  madvise(data, setting.slab, MADV_DONTNEED);
  munmap(data, setting.slab);
}

double rate(const Setting &setting, const std::vector<int> &files) {
  std::vector<Slab> slabs = slabs_of(files, setting.slab);
  std::atomic<int> ready{0};
  std::atomic<int> round{-1};
  std::atomic<int> done{0};
  std::vector<std::atomic<size_t>> next(kRounds + 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < setting.threads; t++) {
    threads.emplace_back([&] {
      sparkfp4_cuda_limits limits = {setting.piece, 0};
      sparkfp4_cuda_context *context;
      check(sparkfp4_cuda_create(0, &limits, &context) == SPARKFP4_CUDA_OK, "create a context");
      {
        Outputs outputs(setting.slab, setting.pinned);
        ready++;
        for (int turn = 0; turn <= kRounds; turn++) {
          while (round < turn) {
            std::this_thread::yield();
          }

          for (size_t i = next[turn]++; i < slabs.size(); i = next[turn]++) {
            encode(context, setting, slabs[i], outputs);
          }

          done++;
        }
      }
      sparkfp4_cuda_destroy(context);
    });
  }

  while (ready < setting.threads) {
    std::this_thread::yield();
  }

  std::vector<double> rates;
  for (int turn = 0; turn <= kRounds; turn++) {
    auto start = std::chrono::steady_clock::now();
    round = turn;
    while (done < (turn + 1) * setting.threads) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }

    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (turn > 0) {
      rates.push_back(static_cast<double>(slabs.size() * setting.slab) / seconds.count() / 1e9);
    }
  }

  for (std::thread &thread : threads) {
    thread.join();
  }

  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

}  // namespace

int main(int argc, char **argv) {
  if (sparkfp4_cuda_device_count() == 0) {
    std::printf("skipped: this machine has no CUDA device\n");
    return 77;
  }

  std::vector<int> files;
  for (int i = 1; i < argc; i++) {
    files.push_back(open(argv[i], O_RDONLY));
    check(files.back() >= 0, "open a file");
  }

  int cores = static_cast<int>(std::thread::hardware_concurrency());
  std::printf("| search | threads | slab, MiB | piece, MiB | results | GB/s of bf16 |\n| --- | --- | --- | --- | --- | --- |\n");
  const Setting kSettings[] = {
      {cores, 16 * kMegabyte, 8 * kMegabyte, false, SPARKFP4_RTN},
      {cores, 16 * kMegabyte, 8 * kMegabyte, true, SPARKFP4_RTN},
      {cores, 64 * kMegabyte, 8 * kMegabyte, true, SPARKFP4_RTN},
      {cores, 16 * kMegabyte, 4 * kMegabyte, true, SPARKFP4_RTN},
      {cores, 16 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_RTN},
      {cores, 16 * kMegabyte, 1 * kMegabyte, true, SPARKFP4_RTN},
      {cores, 64 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_RTN},
      {cores * 3 / 2, 16 * kMegabyte, 8 * kMegabyte, true, SPARKFP4_RTN},
      {cores * 3 / 2, 16 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_RTN},
      {cores * 3 / 2, 64 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_RTN},
      {cores * 2, 16 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_RTN},
      {cores, 16 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_SWEEP},
      {cores * 3 / 2, 16 * kMegabyte, 2 * kMegabyte, true, SPARKFP4_SWEEP},
  };
  for (const Setting &setting : kSettings) {
    std::printf("| %s | %d | %lld | %lld | %s | %.1f |\n", setting.search == SPARKFP4_RTN ? "rtn" : "sweep",
                setting.threads, static_cast<long long>(setting.slab / kMegabyte),
                static_cast<long long>(setting.piece / kMegabyte), setting.pinned ? "pinned" : "pageable",
                rate(setting, files));
    std::fflush(stdout);
  }

  return 0;
}
