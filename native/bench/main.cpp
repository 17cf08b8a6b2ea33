// Rates of the kernels on one core, beside memcpy in the same run. Prints Markdown tables.
// usage: sparkfp4-bench [ROUNDS [bf16|sources|search|keys|layouts|products|all [scalar|avx2|avx512]]]
#include <cstring>

#include "harness.h"

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  const char *part = argc > 2 ? argv[2] : "";
  bool all = argc <= 2 || std::strcmp(part, "all") == 0;
  only_tier = argc > 3 ? argv[3] : "";
  bool known = all || std::strcmp(part, "bf16") == 0 || std::strcmp(part, "sources") == 0 ||
               std::strcmp(part, "search") == 0 || std::strcmp(part, "keys") == 0 ||
               std::strcmp(part, "layouts") == 0 || std::strcmp(part, "products") == 0;
  if (rounds < 1 || !known) {
    std::fprintf(stderr, "usage: sparkfp4-bench [ROUNDS [bf16|sources|search|keys|layouts|products|all "
                         "[scalar|avx2|avx512]]]\n");
    return 2;
  }

  if (all || std::strcmp(part, "bf16") == 0) {
    bench_bf16(rounds);
  }

  if (all || std::strcmp(part, "sources") == 0) {
    bench_sources(rounds);
  }

  if (all || std::strcmp(part, "search") == 0) {
    bench_search(rounds);
  }

  if (all || std::strcmp(part, "keys") == 0) {
    bench_keys(rounds);
  }

  if (all || std::strcmp(part, "layouts") == 0) {
    bench_layouts(rounds);
  }

  if (all || std::strcmp(part, "products") == 0) {
    bench_products(rounds);
  }

  return 0;
}
