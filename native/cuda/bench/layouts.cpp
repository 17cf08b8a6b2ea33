// Rates of the layout kernels beside the device's own copy of as many bytes.
// usage: sparkfp4-cuda-layouts-bench [ROUNDS]
#include <cstdio>
#include <cstdlib>

#include "measure.h"
#include "sparkfp4_cuda_layouts.h"

namespace {

constexpr int64_t kRows = 2048;
constexpr int64_t kCols = 7168;

}  // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  if (rounds < 1) {
    std::fprintf(stderr, "usage: sparkfp4-cuda-layouts-bench [ROUNDS]\n");
    return 2;
  }

  if (sparkfp4_cuda_device_count() == 0) {
    std::printf("skipped: this machine has no CUDA device\n");
    return 77;
  }

  cudaStream_t stream;
  require(cudaStreamCreate(&stream), "create a stream");
  // A unit's rows are those of many experts, so that a launch takes long enough.
  const int64_t rows = 32 * kRows;
  const int64_t code_bytes = rows * kCols / 2;
  const int64_t scale_bytes = rows * kCols / 16;
  unsigned char *memory[4];
  for (unsigned char *&half : memory) {
    require(cudaMalloc(reinterpret_cast<void **>(&half), 2 * code_bytes), "allocate device memory");
    require(cudaMemset(half, 0x35, 2 * code_bytes), "fill device memory");
  }

  unsigned char *arranged = memory[2];
  void *members[] = {memory[0], memory[1]};
  sparkfp4_arrangement shape = {SPARKFP4_INTERLEAVED_64, 2, rows, rows, kCols, kCols};
  static const char *const kCodes[] = {"row-major", "blackwell-moe", "blackwell", "marlin"};
  static const char *const kScales[] = {"row-major", "atoms 128x4", "tiles 8x4",
                                        "blackwell", "marlin",      "marlin of vLLM"};
  std::vector<Work> works;
  for (int i = 0; i < 4; i++) {
    auto layout = static_cast<sparkfp4_code_layout>(i);
    works.push_back({std::string("codes, ") + kCodes[i] + ", arrange", 4 * code_bytes, [=, &shape, &members] {
                       return sparkfp4_cuda_enqueue_arrange_codes(layout, &shape, members, arranged, stream);
                     }});
    works.push_back({std::string("codes, ") + kCodes[i] + ", restore", 4 * code_bytes, [=, &shape, &members] {
                       return sparkfp4_cuda_enqueue_restore_codes(layout, &shape, arranged, members, stream);
                     }});
  }

  for (int i = 0; i < 6; i++) {
    auto layout = static_cast<sparkfp4_scale_layout>(i);
    works.push_back({std::string("scales, ") + kScales[i] + ", arrange", 4 * scale_bytes, [=, &shape, &members] {
                       return sparkfp4_cuda_enqueue_arrange_scales(layout, &shape, members, 1, arranged, stream);
                     }});
    works.push_back({std::string("scales, ") + kScales[i] + ", restore", 4 * scale_bytes, [=, &shape, &members] {
                       return sparkfp4_cuda_enqueue_restore_scales(layout, &shape, arranged, 1, members, stream);
                     }});
  }

  sparkfp4_tensor tensor = {0, 1, rows / 4, kCols, memory[0], memory[1], nullptr};
  int64_t elements = tensor.rows * kCols;
  for (sparkfp4_dtype dtype : {SPARKFP4_F32, SPARKFP4_BF16}) {
    works.push_back({dtype == SPARKFP4_F32 ? "decode to F32" : "decode to BF16",
                     elements / 2 + elements / 16 + elements * (dtype == SPARKFP4_F32 ? 4 : 2), [=, &tensor] {
                       return sparkfp4_cuda_enqueue_decode_tensor(&tensor, dtype, arranged, stream);
                     }});
  }

  std::printf("Gate and up of 32 experts [2048, 7168]: 470 MB of codes, 58.7 MB of scales; decode: 8 experts\n\n");
  measure(works, rounds, stream, arranged, memory[3]);
  cudaStreamDestroy(stream);
  for (unsigned char *half : memory) {
    cudaFree(half);
  }

  return 0;
}
