// Memory of the host that the device writes, and devices that were not asked for.
#include <cuda.h>

#include <thread>

#include "check.h"

namespace {

constexpr int64_t kRows = 1111;
constexpr int64_t kCols = 2048;

struct Target {
  unsigned char *packed;
  unsigned char *scales;
  sparkfp4_error_sums sums[2];
  float amax;
};

void encode(sparkfp4_cuda_context *context, const Bytes &data, Target *encoded) {
  sparkfp4_segment segments[2] = {{data.data(), 400}, {data.data() + 400 * kCols * 2, kRows - 400}};
  sparkfp4_position position;
  require(sparkfp4_cuda_encode_unit(context, SPARKFP4_MODELOPT, nullptr, SPARKFP4_BF16, segments, 2, kCols,
                                    encoded->packed, encoded->scales, encoded->sums, &encoded->amax,
                                    &position) == SPARKFP4_CUDA_OK,
          "encode");
}

// The driver's own word on the calling thread.
CUcontext current() {
  CUcontext context;
  decltype(&cuCtxGetCurrent) get;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", reinterpret_cast<void **>(&get), 12000, cudaEnableDefault,
                                         &found));
  require(get(&context) == CUDA_SUCCESS, "the current context");
  return context;
}

void call_on(int device) {
  sparkfp4_cuda_context *context;
  require(sparkfp4_cuda_create(device, nullptr, &context) == SPARKFP4_CUDA_OK, "create");
  Random random(3);
  Bytes data = draw(SPARKFP4_BF16, Kind::kRowScales, kRows * kCols, kCols, random);
  Bytes packed(kRows * kCols / 2);
  Bytes scales(kRows * kCols / 16);
  Target encoded = {packed.data(), scales.data(), {}, 0};
  encode(context, data, &encoded);
  void *pinned;
  require(sparkfp4_cuda_pin(device, 4096, &pinned) == SPARKFP4_CUDA_OK, "pin");
  sparkfp4_cuda_unpin(device, pinned);
  sparkfp4_cuda_destroy(context);
  require(current() == nullptr, "a thread without a device is left without one");
}

}  // namespace

// Whole, from an odd address, and one of the two only: the bytes are those of pageable memory.
void test_pinned(sparkfp4_cuda_context *context) {
  Random random(9);
  Bytes data = draw(SPARKFP4_BF16, Kind::kRowScales, kRows * kCols, kCols, random);
  int64_t packed_bytes = kRows * kCols / 2;
  int64_t scales_bytes = kRows * kCols / 16;
  Bytes packed(packed_bytes);
  Bytes scales(scales_bytes);
  Target expected = {packed.data(), scales.data(), {}, 0};
  encode(context, data, &expected);
  void *memory;
  require(sparkfp4_cuda_pin(0, packed_bytes + scales_bytes + 2, &memory) == SPARKFP4_CUDA_OK, "pin");
  unsigned char *pinned = static_cast<unsigned char *>(memory);
  for (int turn = 0; turn < 3; turn++) {
    std::memset(pinned, 0xa5, packed_bytes + scales_bytes + 2);
    Bytes pageable(scales_bytes);
    Target actual = {pinned + 1, turn == 2 ? pageable.data() : pinned + 1 + packed_bytes, {}, 0};
    encode(context, data, &actual);
    require(std::memcmp(actual.packed, packed.data(), packed_bytes) == 0 &&
                std::memcmp(actual.scales, scales.data(), scales_bytes) == 0 && actual.amax == expected.amax &&
                std::memcmp(actual.sums, expected.sums, sizeof actual.sums) == 0,
            "pinned as pageable");
    require(pinned[0] == 0xa5 && pinned[packed_bytes + scales_bytes + 1] == 0xa5, "nothing beside it");
  }

  sparkfp4_cuda_unpin(0, memory);
  sparkfp4_cuda_unpin(0, nullptr);
}

void test_threads() {
  std::thread(call_on, 0).join();
}

// In a process of its own, where nothing has used a device yet.
int second_device() {
  std::thread(call_on, 1).join();
  decltype(&cuDevicePrimaryCtxGetState) state;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuDevicePrimaryCtxGetState", reinterpret_cast<void **>(&state), 12000,
                                         cudaEnableDefault, &found));
  unsigned int flags;
  int first;
  int second;
  require(state(0, &flags, &first) == CUDA_SUCCESS && state(1, &flags, &second) == CUDA_SUCCESS, "the states");
  std::printf("contexts after calls on device 1: %d on device 0, %d on device 1\n", first, second);
  return first == 0 && second == 1 ? 0 : 1;
}
