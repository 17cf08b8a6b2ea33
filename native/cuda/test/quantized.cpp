// Quantized sources: FP8, INT4 and E2M1 under all kinds of scales; their dequantization.
#include <thread>

#include "quantized.h"

namespace {

struct Call {
  sparkfp4_recipe recipe;
  sparkfp4_search search;
  const float *importance;
  int64_t importance_values;
  float global_scale;  // 0: of the unit
};

// By the CPU, a thread a segment.
Encoded expect(const QuantizedUnit &unit, const Call &call) {
  Encoded encoded = empty(unit);
  sparkfp4_tier tier = sparkfp4_best_tier();
  std::vector<sparkfp4_quantized_segment> segments = unit.segments();
  int64_t count = static_cast<int64_t>(segments.size());
  encoded.status = static_cast<sparkfp4_cuda_status>(sparkfp4_quantized_amax(
      tier, &unit.scheme, segments.data(), count, unit.cols, &encoded.amax, &encoded.position));
  if (encoded.status != SPARKFP4_CUDA_OK) {
    return encoded;
  }

  float scale = call.global_scale;
  if (scale == 0) {
    if (encoded.amax < 2688.0f * 0x1p-126f) {
      std::memset(encoded.scales.data(), call.recipe == SPARKFP4_MODELOPT ? 0x38 : 0x20, encoded.scales.size());
      return encoded;
    }

    float range = call.search == SPARKFP4_RTN ? 2688.0f : 1536.0f;
    scale = call.recipe == SPARKFP4_MODELOPT ? encoded.amax / range
            : call.search == SPARKFP4_RTN    ? 1.0f / encoded.amax * range
                                             : range / encoded.amax;
  }

  std::vector<std::thread> threads;
  int64_t block = 0;
  for (size_t i = 0; i < segments.size(); i++) {
    threads.emplace_back([&, i, block] {
      sparkfp4_position position;
      sparkfp4_quantized_encode(tier, call.recipe, call.search, call.importance, &unit.scheme, &segments[i], 1,
                                unit.cols, scale, encoded.packed.data() + 8 * block, encoded.scales.data() + block,
                                &encoded.sums[i], &position);
    });
    block += unit.rows[i] * unit.cols / 16;
  }

  for (std::thread &thread : threads) {
    thread.join();
  }

  return encoded;
}

std::string words(const QuantizedUnit &unit, const Call &call) {
  char text[200];
  std::snprintf(text, sizeof text, "codes %d, scales %d, %ld x %ld, [%ld.. x %ld], recipe %d, search %d, scale %a",
                unit.scheme.codes, unit.scheme.scales, static_cast<long>(unit.scheme.block_rows),
                static_cast<long>(unit.scheme.block_cols), static_cast<long>(unit.rows.empty() ? 0 : unit.rows[0]),
                static_cast<long>(unit.cols), call.recipe, call.search, call.global_scale);
  return text;
}

void compare(sparkfp4_cuda_context *context, const QuantizedUnit &unit, const Call &call, size_t offset) {
  Encoded expected = expect(unit, call);
  Encoded on_host = empty(unit);
  std::vector<sparkfp4_quantized_segment> segments = unit.segments();
  int64_t count = static_cast<int64_t>(segments.size());
  sparkfp4_cuda_choice choice = {call.search, call.importance};
  if (call.global_scale == 0) {
    on_host.status = sparkfp4_cuda_quantized_encode_unit(context, call.recipe, &choice, &unit.scheme, segments.data(),
                                                         count, unit.cols, on_host.packed.data(), on_host.scales.data(),
                                                         on_host.sums.data(), &on_host.amax, &on_host.position);
  } else {
    on_host.status = sparkfp4_cuda_quantized_encode(context, call.recipe, &choice, &unit.scheme, segments.data(), count,
                                                    unit.cols, call.global_scale, on_host.packed.data(),
                                                    on_host.scales.data(), on_host.sums.data(), &on_host.position);
  }

  require_same(expected, on_host, "host: " + words(unit, call));
  OnDevice device(unit, offset);
  DeviceBytes importance(call.importance_values * sizeof(float), 0, call.importance);
  choice.importance = call.importance == nullptr ? nullptr : reinterpret_cast<float *>(importance.data());
  // Kernels with sums and without are two.
  for (bool with_sums : {true, false}) {
    Results results(unit.elements(), unit.rows.size(), offset);
    sparkfp4_error_sums *sums = with_sums ? results.device_sums() : nullptr;
    sparkfp4_cuda_status status;
    if (call.global_scale == 0) {
      status = sparkfp4_cuda_enqueue_quantized_encode_unit(
          call.recipe, &choice, &unit.scheme, device.segments.data(), count, unit.cols, results.packed.data(),
          results.scales.data(), sums, results.device_outcome(), results.workspace.data(), nullptr);
    } else {
      status = sparkfp4_cuda_enqueue_quantized_encode(
          call.recipe, &choice, &unit.scheme, device.segments.data(), count, unit.cols, call.global_scale,
          results.packed.data(), results.scales.data(), sums, results.device_outcome(), results.workspace.data(),
          nullptr);
    }

    require(status == SPARKFP4_CUDA_OK, "enqueue");
    Encoded actual = results.read();
    if (!with_sums) {
      actual.sums = expected.sums;
    }

    require_same(expected, actual, (with_sums ? "device: " : "device, without sums: ") + words(unit, call));
  }
}

void compare_amax(sparkfp4_cuda_context *context, const QuantizedUnit &unit) {
  Encoded expected = {};
  Encoded actual = {};
  std::vector<sparkfp4_quantized_segment> segments = unit.segments();
  int64_t count = static_cast<int64_t>(segments.size());
  expected.status = static_cast<sparkfp4_cuda_status>(sparkfp4_quantized_amax(
      sparkfp4_best_tier(), &unit.scheme, segments.data(), count, unit.cols, &expected.amax, &expected.position));
  actual.status = sparkfp4_cuda_quantized_amax(context, &unit.scheme, segments.data(), count, unit.cols, &actual.amax,
                                               &actual.position);
  require_same(expected, actual, "amax");
  require(expected.status != SPARKFP4_CUDA_OK || expected.amax == actual.amax, "amax: value");
}

void compare_bf16(sparkfp4_cuda_context *context, const QuantizedUnit &unit, size_t offset) {
  Encoded expected = {};
  Encoded actual = {};
  sparkfp4_quantized_segment segment = {unit.codes[0].data(), unit.scales[0].data(), unit.rows[0]};
  expected.packed.resize(2 * unit.elements());
  actual.packed.resize(2 * unit.elements());
  expected.status = static_cast<sparkfp4_cuda_status>(sparkfp4_dequantize_bf16(
      sparkfp4_best_tier(), &unit.scheme, &segment, unit.cols, expected.packed.data(), &expected.position));
  actual.status = sparkfp4_cuda_dequantize_bf16(context, &unit.scheme, &segment, unit.cols, actual.packed.data(),
                                                &actual.position);
  require_same(expected, actual, "host: to bf16");
  OnDevice device(unit, offset);
  DeviceBytes out(2 * unit.elements(), offset);
  DeviceBytes outcome(sizeof(sparkfp4_cuda_outcome));
  DeviceBytes workspace(sparkfp4_cuda_workspace_bytes(1));
  require(sparkfp4_cuda_enqueue_dequantize_bf16(&unit.scheme, device.segments.data(), unit.cols, out.data(),
                                                reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data()),
                                                workspace.data(), nullptr) == SPARKFP4_CUDA_OK,
          "enqueue to bf16");
  actual.packed = out.read();
  Bytes bytes = outcome.read();
  sparkfp4_cuda_outcome found;
  std::memcpy(&found, bytes.data(), sizeof found);
  actual.status = static_cast<sparkfp4_cuda_status>(found.status);
  actual.position = found.non_finite;
  require_same(expected, actual, "device: to bf16");
}

}  // namespace

void test_each_quantized(sparkfp4_cuda_context *context) {
  Random random(10);
  for (int codes = SPARKFP4_E4M3; codes <= SPARKFP4_E2M1; codes++) {
    for (size_t offset : {0, 4}) {
      sparkfp4_scheme scheme = {static_cast<sparkfp4_codes>(codes),
                                codes == SPARKFP4_E2M1 ? SPARKFP4_SCALE_E8M0 : SPARKFP4_SCALE_BF16, 1, 32};
      QuantizedUnit unit = draw_unit(scheme, Scales::kUsual, 96, {37, 0, 190}, false, random);
      compare_amax(context, unit);
      compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, 0}, offset);
      compare(context, unit, {SPARKFP4_COMPRESSED_TENSORS, SPARKFP4_SWEEP, nullptr, 0, 0}, offset);
      compare_bf16(context, draw_unit(scheme, Scales::kUsual, 149, {41}, false, random), offset);
      if (codes == SPARKFP4_E4M3) {
        sparkfp4_scheme tiles = {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 128, 128};
        QuantizedUnit strips = draw_unit(tiles, Scales::kUsual, 768, {37, 0, 190}, false, random);
        compare(context, strips, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, 0}, offset);
        compare(context, strips, {SPARKFP4_COMPRESSED_TENSORS, SPARKFP4_RTN, nullptr, 0, 0x1p9f}, offset);
      }

    }
  }
}

void test_quantized(sparkfp4_cuda_context *context) {
  Random random(6);
  const sparkfp4_scheme kSchemes[] = {
      {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 128, 128}, {SPARKFP4_E4M3, SPARKFP4_SCALE_BF16, 1, 0},
      {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 0, 0},     {SPARKFP4_E4M3, SPARKFP4_SCALE_E8M0, 16, 32},
      {SPARKFP4_E4M3, SPARKFP4_SCALE_F16, 48, 384},   {SPARKFP4_E4M3, SPARKFP4_SCALE_E8M0, 1, 32},
      {SPARKFP4_INT4, SPARKFP4_SCALE_BF16, 1, 32},   {SPARKFP4_INT4, SPARKFP4_SCALE_F16, 1, 128},
      {SPARKFP4_INT4, SPARKFP4_SCALE_F32, 1, 0},     {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32},
      {SPARKFP4_E2M1, SPARKFP4_SCALE_F32, 1, 16},    {SPARKFP4_E2M1, SPARKFP4_SCALE_F16, 3, 48}};
  for (const sparkfp4_scheme &scheme : kSchemes) {
    for (Scales kind : {Scales::kUsual, Scales::kPowers, Scales::kAny}) {
      for (int shape = 0; shape < 3; shape++) {
        int64_t cols = shape == 0 ? 16 : shape == 1 ? 336 : 7168;
        std::vector<int64_t> rows = shape == 0   ? std::vector<int64_t>{128, 0, 256, 77}
                                    : shape == 1 ? std::vector<int64_t>(8, 384)
                                                 : std::vector<int64_t>{128, 190};
        QuantizedUnit unit = draw_unit(scheme, kind, cols, rows, false, random);
        compare_amax(context, unit);
        for (int i = 0; i < 8; i++) {
          float scale = i < 2 ? 0
                        : i < 6
                            ? bits_float((100 + random.below(40)) << 23 | (i % 2 == 0 ? 0 : random.below(1u << 23)))
                            : bits_float((1 + random.below(253)) << 23 | random.below(1u << 23));
          sparkfp4_recipe recipe = i % 2 == 0 ? SPARKFP4_MODELOPT : SPARKFP4_COMPRESSED_TENSORS;
          compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, scale}, i == 5 ? 2 : i == 3 ? 4 : i == 4 ? 1 : 0);
        }

        if (shape == 1) {
          std::vector<float> importance(cols * 16);
          for (float &h : importance) {
            h = random.uniform();
          }

          QuantizedUnit small = draw_unit(scheme, kind, cols, std::vector<int64_t>(8, 48), false, random);
          for (int search = SPARKFP4_FOUR_OVER_SIX; search <= SPARKFP4_WEIGHTED_HESSIAN; search++) {
            bool weighted = search >= SPARKFP4_WEIGHTED;
            Call call = {search % 2 == 0 ? SPARKFP4_MODELOPT : SPARKFP4_COMPRESSED_TENSORS,
                         static_cast<sparkfp4_search>(search), weighted ? importance.data() : nullptr,
                         weighted ? static_cast<int64_t>(importance.size()) : 0, 0};
            compare(context, small, call, 0);
          }
        }
      }

      int64_t odd_rows = scheme.block_rows > 1 ? 300 : 41;
      QuantizedUnit odd = draw_unit(scheme, kind, 16 * 9 + 5, {odd_rows}, kind == Scales::kAny, random);
      compare_bf16(context, odd, 0);
      compare_bf16(context, odd, 1);
      compare_bf16(context, draw_unit(scheme, kind, 4096, {257}, false, random), 0);
    }

    // Codes and scales that are not finite.
    for (int i = 0; i < 6; i++) {
      QuantizedUnit unit = draw_unit(scheme, Scales::kUsual, 336, {128, 256}, i % 2 == 0, random);
      if (i >= 3) {
        Bytes &scales = unit.scales[i % 2];
        size_t size = scale_bytes(scheme.scales);
        size_t at = random.below(static_cast<uint32_t>(scales.size() / size)) * size;
        std::memset(&scales[at], 0xff, size);
      }

      compare_amax(context, unit);
      compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, i % 3 == 0 ? 1e-3f : 0}, 0);
    }
  }
}

// Every magnitude in blocks of every largest one, under scales that make ties and any others.
void test_strips(sparkfp4_cuda_context *context) {
  Random random(11);
  sparkfp4_scheme scheme = {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 32, 128};
  for (int i = 0; i < 240; i++) {
    int64_t cols = i % 3 == 0 ? 256 : i % 3 == 1 ? 768 : 1024;
    QuantizedUnit unit = draw_unit(scheme, Scales::kUsual, cols, {96, 0, 64 + i % 33}, false, random);
    uint32_t cut = i % 4 == 0 ? 127 : 16 + random.below(112);
    for (Bytes &codes : unit.codes) {
      uint32_t shift = random.below(127);
      for (size_t block = 0; block < codes.size() / 16; block++) {
        uint32_t most = block % cut;
        for (size_t j = 0; j < 16; j++) {
          size_t code = j == 5 ? most : (block / cut * 15 + j + shift) % (most + 1);
          codes[16 * block + j] = static_cast<unsigned char>(code | random.below(2) << 7);
        }
      }
    }

    float global_scale = bits_float((110 + random.below(16)) << 23 | (i % 2 == 0 ? 0 : random.below(1u << 23)));
    for (Bytes &scales : unit.scales) {
      for (size_t at = 0; at < scales.size(); at += 4) {
        // Near enough to the global scale that blocks' scales are all kinds, or so that quotients tie.
        float ratio = bits_float((i % 5 == 4 ? 60 + random.below(140) : 118 + random.below(14)) << 23);
        float times = i % 2 == 0 ? 1 + random.below(16) / 16.0f : bits_float(127u << 23 | random.below(1u << 23));
        float scale = global_scale * ratio * times;
        std::memcpy(&scales[at], &scale, 4);
      }
    }

    for (sparkfp4_recipe recipe : {SPARKFP4_MODELOPT, SPARKFP4_COMPRESSED_TENSORS}) {
      float stored = recipe == SPARKFP4_MODELOPT ? global_scale : 1 / global_scale;
      compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, stored}, i % 7 == 6 ? 4 : 0);
      compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, 0}, 0);
    }
  }
}

// MXFP4's blocks of every largest magnitude, with every magnitude up to it, beside each other and blocks of zeros; under
// source scales so that blocks' scales are all that E4M3 has, below and above, and now and then any.
void test_source_blocks(sparkfp4_cuda_context *context) {
  Random random(12);
  sparkfp4_scheme scheme = {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32};
  for (int i = 0; i < 160; i++) {
    int64_t cols = i % 3 == 0 ? 32 : i % 3 == 1 ? 352 : 4096;
    QuantizedUnit unit = draw_unit(scheme, Scales::kUsual, cols, {64 + i % 33, 0, 96}, false, random);
    for (Bytes &codes : unit.codes) {
      for (size_t block = 0; block < codes.size() / 8; block++) {
        uint32_t most = random.below(8);
        for (size_t j = 0; j < 8; j++) {
          uint32_t low = j == 3 ? most : random.below(most + 1);
          uint32_t high = random.below(most + 1);
          codes[8 * block + j] = static_cast<unsigned char>(low | high << 4 | (random.next() >> 56 & 0x88));
        }
      }
    }

    uint32_t exponent = i % 8 == 7 ? 1 + random.below(250) : 100 + random.below(60);
    float global_scale = bits_float(exponent << 23 | (i % 2 == 0 ? 0 : random.below(1u << 23)));
    for (Bytes &scales : unit.scales) {
      for (unsigned char &scale : scales) {
        int near = static_cast<int>(exponent) - 8 + static_cast<int>(random.below(22));
        bool any = random.below(i % 4 == 3 ? 20 : 2000) == 0;
        scale = static_cast<unsigned char>(any ? random.below(255) : near < 0 ? 0 : near > 254 ? 254 : near);
      }
    }

    // NaN, over a block of zeros too
    if (i % 16 == 15) {
      Bytes &scales = unit.scales[0];
      scales[random.below(static_cast<uint32_t>(scales.size()))] = 255;
      std::memset(unit.codes[0].data(), i % 32 == 31 ? 0 : 0x80, unit.codes[0].size() / 2);
    }

    for (sparkfp4_recipe recipe : {SPARKFP4_MODELOPT, SPARKFP4_COMPRESSED_TENSORS}) {
      float stored = recipe == SPARKFP4_MODELOPT ? global_scale : 1 / global_scale;
      compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, stored}, i % 7 == 6 ? 4 : i % 7 == 5 ? 1 : 0);
      compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, 0}, 0);
    }
  }
}
