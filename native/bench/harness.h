// Works that take turns, timed on one thread.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "sparkfp4.h"

constexpr double kGiga = 1e9;

struct Work {
  std::string name;
  double bytes_moved;  // an element, read and written; of products, operations
  std::function<void()> run;
  std::vector<double> seconds;

  Work(std::string name, double bytes_moved, std::function<void()> run)
      : name(std::move(name)), bytes_moved(bytes_moved), run(std::move(run)) {}
  double median() const { return seconds[seconds.size() / 2]; }
  double best() const { return seconds[0]; }
};

// The name of the one tier to be measured; empty for all that the processor has.
inline std::string only_tier;

inline bool is_measured(sparkfp4_tier tier) {
  const char *names[] = {"scalar", "avx2", "avx512"};
  return sparkfp4_has_tier(tier) && (only_tier.empty() || only_tier == names[tier]);
}

inline void check(sparkfp4_status status) {
  if (status != SPARKFP4_OK) {
    std::fprintf(stderr, "Cannot run the kernel: status %d\n", status);
    std::exit(1);
  }
}

inline double seconds_of(const std::function<void()> &run, int repeats) {
  // The thread's own time: what other processes take of the core is not the kernel's.
  timespec start;
  timespec end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  for (int i = 0; i < repeats; i++) {
    run();
  }

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return ((end.tv_sec - start.tv_sec) + 1e-9 * (end.tv_nsec - start.tv_nsec)) / repeats;
}

// All work takes turns in every round, so that a noisy spell hits all alike; the seconds are sorted at the end.
inline void measure(std::vector<Work> &works, int rounds, int repeats) {
  for (int round = -1; round < rounds; round++) {
    for (Work &work : works) {
      double seconds = seconds_of(work.run, repeats);
      if (round >= 0) {
        work.seconds.push_back(seconds);
      }
    }
  }

  for (Work &work : works) {
    std::sort(work.seconds.begin(), work.seconds.end());
  }
}

// The tables of bf16 by tier, of all sources, of the scale searches, of keys, of layouts, and of products.
void bench_bf16(int rounds);
void bench_sources(int rounds);
void bench_search(int rounds);
void bench_keys(int rounds);
void bench_layouts(int rounds);
void bench_products(int rounds);
