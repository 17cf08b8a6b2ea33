// What is refused and what fails.
#include "check.h"

namespace {

constexpr int64_t kCols = 2048;
constexpr int64_t kMegabyte = 1 << 20;

struct Outputs {
  Bytes packed;
  Bytes scales;
  std::vector<sparkfp4_error_sums> sums;
  float amax;

  explicit Outputs(int64_t rows) : packed(rows * kCols / 2), scales(rows * kCols / 16), sums(2), amax(0) {}
};

sparkfp4_cuda_status encode(sparkfp4_cuda_context *context, const Bytes &data, int64_t rows, Outputs *outputs) {
  sparkfp4_segment segments[2] = {{data.data(), rows / 3}, {data.data() + rows / 3 * kCols * 2, rows - rows / 3}};
  sparkfp4_position position;
  return sparkfp4_cuda_encode_unit(context, SPARKFP4_MODELOPT, nullptr, SPARKFP4_BF16, segments, 2, kCols,
                                   outputs->packed.data(), outputs->scales.data(), outputs->sums.data(),
                                   &outputs->amax, &position);
}

// With little device memory a unit goes by parts, down to too little.
void test_little_memory() {
  Random random(8);
  int64_t rows = 4099;
  Bytes data = draw(SPARKFP4_BF16, Kind::kRowScales, rows * kCols, kCols, random);
  Outputs expected(rows);
  sparkfp4_cuda_context *context;
  require(sparkfp4_cuda_create(0, nullptr, &context) == SPARKFP4_CUDA_OK, "create");
  require(encode(context, data, rows, &expected) == SPARKFP4_CUDA_OK, "encode");
  sparkfp4_cuda_destroy(context);
  for (int64_t megabytes : {16, 6, 3}) {
    sparkfp4_cuda_limits limits = {kMegabyte, megabytes * kMegabyte};
    require(sparkfp4_cuda_create(0, &limits, &context) == SPARKFP4_CUDA_OK, "create with limits");
    Outputs actual(rows);
    for (int turn = 0; turn < 2; turn++) {
      require(encode(context, data, rows, &actual) == SPARKFP4_CUDA_OK, "encode by parts");
      require(actual.packed == expected.packed && actual.scales == expected.scales && actual.amax == expected.amax &&
                  std::memcmp(actual.sums.data(), expected.sums.data(), 2 * sizeof(sparkfp4_error_sums)) == 0,
              "by parts as whole");
    }

    sparkfp4_cuda_destroy(context);
  }

  sparkfp4_cuda_limits limits = {kMegabyte, kMegabyte / 4};
  require(sparkfp4_cuda_create(0, &limits, &context) == SPARKFP4_CUDA_OK, "create with too little");
  Outputs none(rows);
  require(encode(context, data, rows, &none) == SPARKFP4_CUDA_OUT_OF_MEMORY, "out of memory is said");
  require(std::strstr(sparkfp4_cuda_error(), "emory") != nullptr, "out of memory is worded");
  // What fits is still done.
  Outputs small(3);
  require(encode(context, data, 3, &small) == SPARKFP4_CUDA_OK, "the context serves on");
  sparkfp4_cuda_destroy(context);
}

void test_refusals() {
  sparkfp4_cuda_context *context = nullptr;
  sparkfp4_cuda_limits odd = {kMegabyte + 1, 0};
  require(sparkfp4_cuda_create(0, &odd, &context) == SPARKFP4_CUDA_INVALID, "an odd piece");
  require(sparkfp4_cuda_create(-1, nullptr, &context) == SPARKFP4_CUDA_INVALID, "a negative device");
  require(sparkfp4_cuda_create(4711, nullptr, &context) == SPARKFP4_CUDA_NO_DEVICE, "no such device");
  require(context == nullptr, "no context");
  void *memory = nullptr;
  require(sparkfp4_cuda_pin(-1, 1, &memory) == SPARKFP4_CUDA_INVALID, "pinned for a negative device");
  require(sparkfp4_cuda_pin(0, 0, &memory) == SPARKFP4_CUDA_INVALID, "no bytes");
  require(sparkfp4_cuda_pin(4711, 1, &memory) == SPARKFP4_CUDA_NO_DEVICE, "pinned for no such device");
  require(memory == nullptr, "nothing pinned");
  require(sparkfp4_cuda_create(0, nullptr, &context) == SPARKFP4_CUDA_OK, "create");
  Bytes data(64);
  sparkfp4_segment segment = {data.data(), 2};
  sparkfp4_position position;
  float amax;
  unsigned char out[64];
  auto call = [&](const sparkfp4_cuda_choice *choice, int64_t cols, float scale) {
    return sparkfp4_cuda_encode(context, SPARKFP4_MODELOPT, choice, SPARKFP4_BF16, &segment, 1, cols, scale, out, out,
                                nullptr, &position);
  };
  float importance[16] = {1};
  sparkfp4_cuda_choice no_importance = {SPARKFP4_WEIGHTED, nullptr};
  sparkfp4_cuda_choice needless = {SPARKFP4_SWEEP, importance};
  require(call(nullptr, 16, 1) == SPARKFP4_CUDA_OK, "a good call");
  require(call(nullptr, 8, 1) == SPARKFP4_CUDA_INVALID, "cols");
  require(call(nullptr, 16, 0) == SPARKFP4_CUDA_INVALID, "scale");
  require(call(&no_importance, 16, 1) == SPARKFP4_CUDA_INVALID, "importance is missing");
  require(call(&needless, 16, 1) == SPARKFP4_CUDA_INVALID, "importance without use");
  require(sparkfp4_cuda_amax(nullptr, SPARKFP4_BF16, &segment, 1, &amax, &position) == SPARKFP4_CUDA_INVALID,
          "no context");
  sparkfp4_cuda_destroy(context);
  sparkfp4_cuda_destroy(nullptr);
}

}  // namespace

void test_failures() {
  test_refusals();
  test_little_memory();
}

int bad_address() {
  sparkfp4_cuda_context *context;
  require(sparkfp4_cuda_create(0, nullptr, &context) == SPARKFP4_CUDA_OK, "create");
  DeviceBytes results(4096);
  sparkfp4_segment segment = {reinterpret_cast<const void *>(uintptr_t{0x1000}), 1 << 20};
  sparkfp4_cuda_enqueue_amax(SPARKFP4_BF16, &segment, 1, reinterpret_cast<sparkfp4_cuda_outcome *>(results.data()),
                             results.data() + 1024, nullptr);
  cudaStreamSynchronize(nullptr);
  Bytes data(1 << 12);
  segment.data = data.data();
  segment.count = 1 << 11;
  float amax;
  sparkfp4_position position;
  int status = sparkfp4_cuda_amax(context, SPARKFP4_BF16, &segment, 1, &amax, &position);
  std::printf("after a bad address: status %d, %s\n", status, sparkfp4_cuda_error());
  return status == SPARKFP4_CUDA_STICKY ? 0 : 1;
}
