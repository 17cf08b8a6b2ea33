// Holds the CUDA kernels to those of the CPU, bit for bit.
// usage: sparkfp4-cuda-test [TEST...]      exit status 77 where there is no device
#include <chrono>

#include "check.h"

int main(int argc, char **argv) {
  if (sparkfp4_cuda_device_count() == 0) {
    std::printf("skipped: this machine has no CUDA device\n");
    return 77;
  }

  if (argc > 1 && std::string(argv[1]) == "bad-address") {
    return bad_address();
  }

  if (argc > 1 && std::string(argv[1]) == "second-device") {
    return second_device();
  }

  sparkfp4_cuda_context *context;
  require(sparkfp4_cuda_create(0, nullptr, &context) == SPARKFP4_CUDA_OK, "create");
  struct Test {
    const char *name;
    void (*run)(sparkfp4_cuda_context *);
  };
  auto each = [](sparkfp4_cuda_context *all) {
    test_each_plain(all);
    test_each_quantized(all);
    test_each_mxfp4(all);
    test_each_keys(all);
    test_each_layouts(all);
    test_each_values(all);
  };
  const Test kTests[] = {{"each", each},
                         {"each-keys", test_each_keys},
                         {"keys", test_keys},
                         {"each-layouts", test_each_layouts},
                         {"layouts", test_layouts},
                         {"each-values", test_each_values},
                         {"values", test_values},
                         {"plain", test_plain},
                         {"all-bf16", test_all_bf16},
                         {"quantized", test_quantized},
                         {"strips", test_strips},
                         {"source-blocks", test_source_blocks},
                         {"mxfp4", test_mxfp4},
                         {"search", test_search},
                         {"search-limits", test_search_limits},
                         {"sums-in-order", test_sums_in_order},
                         {"pinned", test_pinned},
                         {"threads", [](sparkfp4_cuda_context *) { test_threads(); }},
                         {"failures", [](sparkfp4_cuda_context *) { test_failures(); }},
                         {"large", test_large}};
  for (const Test &test : kTests) {
    bool asked = argc == 1;
    for (int i = 1; i < argc; i++) {
      asked |= std::string(argv[i]) == test.name;
    }

    if (asked) {
      auto start = std::chrono::steady_clock::now();
      test.run(context);
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      std::printf("%s: same as the CPU, %.1f s\n", test.name, seconds.count());
      std::fflush(stdout);
    }
  }

  sparkfp4_cuda_destroy(context);
  // A sticky error takes the process with it.
  std::string child = std::string("'") + argv[0] + "' ";
  require(argc > 1 || std::system((child + "bad-address").c_str()) == 0, "a bad address is sticky");
  require(argc > 1 || sparkfp4_cuda_device_count() < 2 || std::system((child + "second-device").c_str()) == 0,
          "the first device is not touched by calls on the second");
  return 0;
}
