// Rates of the kernels on one core, beside memcpy in the same run. Prints Markdown tables.
// usage: sparkfp4-bench [ROUNDS]
#include "harness.h"

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: sparkfp4-bench [ROUNDS]\n");
    return 2;
  }

  bench_bf16(rounds);
  bench_sources(rounds);
  bench_keys(rounds);
  return 0;
}
