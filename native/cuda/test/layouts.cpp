// Layouts: both faces against the kernels of the CPU, on random shapes.
#include <functional>

#include "check.h"
#include "sparkfp4_cuda_layouts.h"

namespace {

constexpr int64_t kMultiples[] = {1, 1, 64, 32, 16};

int64_t up_to(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

Bytes random_bytes(int64_t size, Random &random) {
  Bytes bytes(static_cast<size_t>(size));
  for (unsigned char &byte : bytes) {
    byte = static_cast<unsigned char>(random.next());
  }

  return bytes;
}

sparkfp4_arrangement random_shape(Random &random, int64_t tile_k, bool is_large) {
  sparkfp4_arrangement shape = {};
  shape.order = static_cast<sparkfp4_row_order>(random.below(5));
  shape.members = shape.order == SPARKFP4_PLAIN ? 1 : 1 + random.below(3);
  shape.rows = random.below(is_large ? 1000 : 150);
  shape.padded_rows = up_to(shape.rows + random.below(2) * random.below(70), kMultiples[shape.order]);
  shape.k = 16 * static_cast<int64_t>(random.below(is_large ? 200 : 30));
  shape.padded_k = up_to(shape.k + random.below(2) * 16 * random.below(9), tile_k);
  return shape;
}

// A way to a layout and back, by the CPU's kernels, by the host face and by the device face.
struct Way {
  int64_t member_bytes;
  int64_t arranged_bytes;
  std::function<int(const void *const *, void *)> arrange[3];
  std::function<int(const void *, void *const *)> restore[3];
};

// At any alignment now and then; else at that of CUDA's own memory.
size_t offset(Random &random) { return random.below(2) == 0 ? 0 : random.below(16); }

void round_trip(const Way &way, const sparkfp4_arrangement &shape, Random &random, const std::string &what) {
  std::vector<Bytes> members;
  std::vector<const void *> sources;
  std::vector<DeviceBytes> on_device;
  std::vector<const void *> device_sources;
  std::vector<DeviceBytes> back_on_device;
  std::vector<void *> device_targets;
  std::vector<Bytes> back[2];
  std::vector<void *> targets[2];
  for (int64_t i = 0; i < shape.members; i++) {
    members.push_back(random_bytes(way.member_bytes, random));
    on_device.emplace_back(members.back().size(), offset(random), members.back().data());
    back_on_device.emplace_back(members.back().size(), offset(random));
    back[0].emplace_back(members.back().size());
    back[1].emplace_back(members.back().size());
  }

  for (int64_t i = 0; i < shape.members; i++) {
    sources.push_back(members[i].data());
    device_sources.push_back(on_device[i].data());
    device_targets.push_back(back_on_device[i].data());
    targets[0].push_back(back[0][i].data());
    targets[1].push_back(back[1][i].data());
  }

  Bytes expected(static_cast<size_t>(way.arranged_bytes));
  Bytes from_host(expected.size(), 0x5a);
  DeviceBytes arranged(expected.size(), offset(random));
  require(way.arrange[0](sources.data(), expected.data()) == 0, "CPU arranges");
  require(way.arrange[1](sources.data(), from_host.data()) == 0, "host memory is arranged");
  require(way.arrange[2](device_sources.data(), arranged.data()) == 0, "device memory is arranged");
  check(cudaDeviceSynchronize());
  if (from_host != expected || arranged.read() != expected) {
    fail("arranged: " + what);
  }

  // Any bytes, those that no scale has among them.
  Bytes any = random_bytes(way.arranged_bytes, random);
  DeviceBytes any_on_device(any.size(), offset(random), any.data());
  require(way.restore[0](any.data(), targets[0].data()) == 0, "CPU restores");
  require(way.restore[1](any.data(), targets[1].data()) == 0, "host memory is restored");
  require(way.restore[2](any_on_device.data(), device_targets.data()) == 0, "device memory is restored");
  check(cudaDeviceSynchronize());
  for (int64_t i = 0; i < shape.members; i++) {
    if (back[0][i] != back[1][i] || back[0][i] != back_on_device[i].read()) {
      fail("restored: " + what);
    }
  }
}

std::string words(const char *kind, int layout, const sparkfp4_arrangement &shape) {
  return std::string(kind) + ", layout " + std::to_string(layout) + ", order " + std::to_string(shape.order) + ", " +
         std::to_string(shape.members) + " of [" + std::to_string(shape.rows) + ", " + std::to_string(shape.k) +
         "] padded to [" + std::to_string(shape.padded_rows) + ", " + std::to_string(shape.padded_k) + "]";
}

void codes(sparkfp4_cuda_context *context, int number, bool is_large, Random &random) {
  bool blackwell = number == SPARKFP4_CODES_BLACKWELL_MOE_N128_K64 || number == SPARKFP4_CODES_BLACKWELL_N128_K64;
  sparkfp4_arrangement shape = random_shape(random, blackwell ? 64 : 16, is_large);
  auto layout = static_cast<sparkfp4_code_layout>(number);
  Way way = {
      shape.rows * shape.k / 2,
      sparkfp4_arranged_code_bytes(layout, &shape),
      {[&](const void *const *from, void *to) {
         return static_cast<int>(sparkfp4_arrange_codes(SPARKFP4_SCALAR, layout, &shape, from, to));
       },
       [&](const void *const *from, void *to) {
         return static_cast<int>(sparkfp4_cuda_arrange_codes(context, layout, &shape, from, to));
       },
       [&](const void *const *from, void *to) {
         return static_cast<int>(sparkfp4_cuda_enqueue_arrange_codes(layout, &shape, from, to, nullptr));
       }},
      {[&](const void *from, void *const *to) {
         return static_cast<int>(sparkfp4_restore_codes(SPARKFP4_SCALAR, layout, &shape, from, to));
       },
       [&](const void *from, void *const *to) {
         return static_cast<int>(sparkfp4_cuda_restore_codes(context, layout, &shape, from, to));
       },
       [&](const void *from, void *const *to) {
         return static_cast<int>(sparkfp4_cuda_enqueue_restore_codes(layout, &shape, from, to, nullptr));
       }}};
  round_trip(way, shape, random, words("codes", number, shape));
}

void scales(sparkfp4_cuda_context *context, int number, bool is_large, Random &random) {
  sparkfp4_arrangement shape = random_shape(random, number == SPARKFP4_SCALES_BLACKWELL_N128_K64 ? 64 : 16, is_large);
  auto layout = static_cast<sparkfp4_scale_layout>(number);
  float factor = layout == SPARKFP4_SCALES_MARLIN_S0E5M3 ? static_cast<float>(1 << random.below(18)) : 1;
  Way way = {
      shape.rows * shape.k / 16,
      sparkfp4_arranged_scale_bytes(layout, &shape),
      {[&](const void *const *from, void *to) {
         return static_cast<int>(sparkfp4_arrange_scales(SPARKFP4_SCALAR, layout, &shape, from, factor, to));
       },
       [&](const void *const *from, void *to) {
         return static_cast<int>(sparkfp4_cuda_arrange_scales(context, layout, &shape, from, factor, to));
       },
       [&](const void *const *from, void *to) {
         return static_cast<int>(sparkfp4_cuda_enqueue_arrange_scales(layout, &shape, from, factor, to, nullptr));
       }},
      {[&](const void *from, void *const *to) {
         return static_cast<int>(sparkfp4_restore_scales(SPARKFP4_SCALAR, layout, &shape, from, factor, to));
       },
       [&](const void *from, void *const *to) {
         return static_cast<int>(sparkfp4_cuda_restore_scales(context, layout, &shape, from, factor, to));
       },
       [&](const void *from, void *const *to) {
         return static_cast<int>(sparkfp4_cuda_enqueue_restore_scales(layout, &shape, from, factor, to, nullptr));
       }}};
  round_trip(way, shape, random, words("scales", number, shape));
}

void decode(sparkfp4_cuda_context *context, bool is_activation, sparkfp4_dtype dtype, Random &random) {
  int64_t experts = is_activation ? 1 : 1 + random.below(3);
  int64_t rows = random.below(300);
  int64_t k = 64 * static_cast<int64_t>(random.below(12));
  int64_t scale_bytes = (is_activation ? rows : experts * up_to(rows, 128)) * k / 16;
  Bytes codes = random_bytes(experts * rows * k / 2, random);
  Bytes of_scales = random_bytes(scale_bytes, random);
  float global[] = {0.3f, 1.7e-3f, 3e38f, 1};
  bool has_global = random.below(3) > 0;
  sparkfp4_tensor tensor = {is_activation, experts, rows, k, codes.data(), of_scales.data(),
                            has_global ? global : nullptr};
  Bytes expected(static_cast<size_t>(experts * rows * k * element_bytes(dtype)));
  Bytes from_host(expected.size());
  require(sparkfp4_decode_tensor(SPARKFP4_SCALAR, &tensor, dtype, expected.data()) == SPARKFP4_OK, "CPU decodes");
  require(sparkfp4_cuda_decode_tensor(context, &tensor, dtype, from_host.data()) == SPARKFP4_CUDA_OK,
          "host memory is decoded");
  DeviceBytes codes_on_device(codes.size(), 0, codes.data());
  DeviceBytes scales_on_device(of_scales.size(), 4, of_scales.data());
  DeviceBytes global_on_device(sizeof global, 4, global);
  DeviceBytes out(expected.size(), 4);
  tensor.codes = codes_on_device.data();
  tensor.scales = scales_on_device.data();
  tensor.global_scale = has_global ? reinterpret_cast<const float *>(global_on_device.data()) : nullptr;
  require(sparkfp4_cuda_enqueue_decode_tensor(&tensor, dtype, out.data(), nullptr) == SPARKFP4_CUDA_OK,
          "device memory is decoded");
  check(cudaDeviceSynchronize());
  require(from_host == expected && out.read() == expected, "decoded as by the CPU");
}

void rounds(sparkfp4_cuda_context *context, int count, bool is_large) {
  Random random(is_large ? 32 : 31);
  for (int round = 0; round < count; round++) {
    for (int layout = 0; layout < 4; layout++) {
      codes(context, layout, is_large, random);
    }

    for (int layout = 0; layout < 6; layout++) {
      scales(context, layout, is_large, random);
    }

    for (bool is_activation : {false, true}) {
      decode(context, is_activation, SPARKFP4_F32, random);
      decode(context, is_activation, SPARKFP4_BF16, random);
    }
  }
}

void refusals() {
  sparkfp4_arrangement shape = {SPARKFP4_INTERLEAVED_64, 2, 64, 96, 64, 64};
  const void *members[] = {&shape, &shape};
  require(sparkfp4_cuda_enqueue_arrange_codes(SPARKFP4_CODES_ROW_MAJOR, &shape, members, &shape, nullptr) ==
              SPARKFP4_CUDA_INVALID,
          "96 rows cannot be interleaved by 64");
  shape.padded_rows = 64;
  require(sparkfp4_cuda_enqueue_arrange_scales(SPARKFP4_SCALES_ATOM_8X4, &shape, members, 2, &shape, nullptr) ==
              SPARKFP4_CUDA_INVALID,
          "atoms have no factor");
}

}  // namespace

void test_each_layouts(sparkfp4_cuda_context *context) {
  rounds(context, 2, false);
}

void test_layouts(sparkfp4_cuda_context *context) {
  refusals();
  rounds(context, 40, false);
  rounds(context, 6, true);
}
