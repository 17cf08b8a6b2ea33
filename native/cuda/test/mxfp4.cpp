// The cast of MXFP4 and the largest exponent of its scales.
#include "quantized.h"

namespace {

const sparkfp4_scheme kScheme = {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32};

Encoded expect_cast(const QuantizedUnit &unit, sparkfp4_recipe recipe, int32_t kmax) {
  Encoded encoded = empty(unit);
  std::vector<sparkfp4_quantized_segment> segments = unit.segments();
  encoded.status = static_cast<sparkfp4_cuda_status>(
      sparkfp4_cast_mxfp4(sparkfp4_best_tier(), recipe, segments.data(), static_cast<int64_t>(segments.size()),
                          unit.cols, kmax, encoded.packed.data(), encoded.scales.data(), encoded.sums.data(),
                          &encoded.requantized, &encoded.position));
  return encoded;
}

void compare_cast(sparkfp4_cuda_context *context, const QuantizedUnit &unit, sparkfp4_recipe recipe, int32_t kmax,
                  size_t offset) {
  Encoded expected = expect_cast(unit, recipe, kmax);
  Encoded on_host = empty(unit);
  std::vector<sparkfp4_quantized_segment> segments = unit.segments();
  int64_t count = static_cast<int64_t>(segments.size());
  on_host.status = sparkfp4_cuda_cast_mxfp4(context, recipe, segments.data(), count, unit.cols, kmax,
                                            on_host.packed.data(), on_host.scales.data(), on_host.sums.data(),
                                            &on_host.requantized, &on_host.position);
  std::string what = "cast of kmax " + std::to_string(kmax) + ", cols " + std::to_string(unit.cols);
  require_same(expected, on_host, "host: " + what);
  OnDevice device(unit, offset);
  for (bool with_sums : {true, false}) {
    Results results(unit.elements(), unit.rows.size(), offset);
    require(sparkfp4_cuda_enqueue_cast_mxfp4(recipe, device.segments.data(), count, unit.cols, kmax,
                                             results.packed.data(), results.scales.data(),
                                             with_sums ? results.device_sums() : nullptr, results.device_outcome(),
                                             results.workspace.data(), nullptr) == SPARKFP4_CUDA_OK,
            "enqueue cast");
    Encoded actual = results.read();
    if (!with_sums) {
      actual.sums = expected.sums;
    }

    require_same(expected, actual, "device: " + what);
  }
}

void compare_exponent(sparkfp4_cuda_context *context, const QuantizedUnit &unit) {
  std::vector<sparkfp4_segment> scales;
  for (const Bytes &bytes : unit.scales) {
    scales.push_back({bytes.data(), static_cast<int64_t>(bytes.size())});
  }

  int64_t count = static_cast<int64_t>(scales.size());
  int32_t expected_exponent = 0;
  int32_t actual_exponent = 0;
  Encoded expected = {};
  Encoded actual = {};
  expected.status = static_cast<sparkfp4_cuda_status>(
      sparkfp4_largest_exponent(scales.data(), count, &expected_exponent, &expected.position));
  actual.status = sparkfp4_cuda_largest_exponent(context, scales.data(), count, &actual_exponent, &actual.position);
  require_same(expected, actual, "exponent");
  require(expected_exponent == actual_exponent, "exponent: value");
  for (int64_t i = 0; i < count; i++) {
    require(unit.scales[i].empty() || scales[i].data != nullptr, "scales");
  }

  OnDevice device(unit, 1);
  for (int64_t i = 0; i < count; i++) {
    scales[i].data = device.segments[i].scales;
  }

  DeviceBytes outcome(sizeof(sparkfp4_cuda_outcome));
  DeviceBytes workspace(sparkfp4_cuda_workspace_bytes(count));
  require(sparkfp4_cuda_enqueue_largest_exponent(scales.data(), count,
                                                 reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data()),
                                                 workspace.data(), nullptr) == SPARKFP4_CUDA_OK,
          "enqueue exponent");
  Bytes bytes = outcome.read();
  sparkfp4_cuda_outcome found;
  std::memcpy(&found, bytes.data(), sizeof found);
  require(found.status == expected.status &&
              (found.status != SPARKFP4_CUDA_OK || found.exponent == expected_exponent) &&
              (found.status == SPARKFP4_CUDA_OK || found.non_finite.index == expected.position.index),
          "exponent on the device");
}

}  // namespace

void test_each_mxfp4(sparkfp4_cuda_context *context) {
  Random random(13);
  for (size_t offset : {0, 4}) {
    QuantizedUnit unit = draw_unit(kScheme, Scales::kUsual, 96, {37, 0, 190}, false, random);
    compare_exponent(context, unit);
    compare_cast(context, unit, SPARKFP4_MODELOPT, 2, offset);
    compare_cast(context, unit, SPARKFP4_MODELOPT, 18, offset);
  }
}

void test_mxfp4(sparkfp4_cuda_context *context) {
  Random random(7);
  // Scales above the largest, all of them or one alone, with no other fault.
  for (int i = 0; i < 12; i++) {
    QuantizedUnit unit = draw_unit(kScheme, Scales::kUsual, i % 2 == 0 ? 96 : 4096, {40, 7}, false, random);
    for (Bytes &scales : unit.scales) {
      for (unsigned char &scale : scales) {
        scale = static_cast<unsigned char>((i < 4 ? 110 : 104) + random.below(3));
      }
    }

    unit.scales[i % 3 == 0 ? 1 : 0].back() = 107 + static_cast<unsigned char>(i % 4 == 3 ? 0 : 1);
    require(expect_cast(unit, SPARKFP4_MODELOPT, -20).status ==
                (i >= 4 && i % 4 == 3 ? SPARKFP4_CUDA_OK : SPARKFP4_CUDA_INVALID),
            "a scale above the largest is refused by the CPU");
    compare_cast(context, unit, SPARKFP4_MODELOPT, -20, 0);
    compare_cast(context, unit, SPARKFP4_COMPRESSED_TENSORS, -20, i % 4);
  }

  for (int i = 0; i < 60; i++) {
    int64_t cols = i % 3 == 0 ? 32 : i % 3 == 1 ? 352 : 4096;
    QuantizedUnit unit = draw_unit(kScheme, Scales::kUsual, cols, {i % 2 == 0 ? 300 : 41, 0, 129}, false, random);
    int top = i < 20 ? 120 : static_cast<int>(random.below(252));
    int spread = i % 4 == 0 ? 8 : i % 4 == 1 ? 18 : 30;
    for (Bytes &scales : unit.scales) {
      for (unsigned char &scale : scales) {
        int drawn = top - static_cast<int>(random.below(spread));
        scale = static_cast<unsigned char>(drawn < 0 || random.below(50) == 0 ? 0 : drawn);
      }
    }

    bool wrong = i % 10 == 9;
    if (wrong) {
      for (int j = 0; j < 3; j++) {
        Bytes &scales = unit.scales[random.below(2) * 2];
        scales[random.below(static_cast<uint32_t>(scales.size()))] =
            static_cast<unsigned char>(j == 0 ? 255 : j == 1 ? 253 : std::min(top + 3, 251));
      }
    }

    compare_exponent(context, unit);
    int kmax = top - 127 + (i % 5 == 0 ? 2 : 0);
    if (kmax < -118) {
      kmax = -118;
    }

    if (kmax <= 124) {
      compare_cast(context, unit, SPARKFP4_MODELOPT, kmax, 0);
      compare_cast(context, unit, SPARKFP4_COMPRESSED_TENSORS, kmax, i % 4);
    }
  }
}
