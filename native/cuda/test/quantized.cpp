// Quantized sources: FP8, INT4 and E2M1 under all kinds of scales; their dequantization; MXFP4.
#include <thread>

#include "check.h"

namespace {

struct Unit {
  sparkfp4_scheme scheme;
  int64_t cols;
  std::vector<int64_t> rows;
  std::vector<Bytes> codes;
  std::vector<Bytes> scales;

  int64_t elements() const {
    int64_t all = 0;
    for (int64_t n : rows) {
      all += n * cols;
    }

    return all;
  }

  std::vector<sparkfp4_quantized_segment> segments() const {
    std::vector<sparkfp4_quantized_segment> all;
    for (size_t i = 0; i < rows.size(); i++) {
      all.push_back({codes[i].data(), scales[i].data(), rows[i]});
    }

    return all;
  }
};

// How scales are drawn.
enum class Scales { kUsual, kPowers, kAny };

int scale_bytes(sparkfp4_scale_type type) {
  return type == SPARKFP4_SCALE_F32 ? 4 : type == SPARKFP4_SCALE_E8M0 ? 1 : 2;
}

int64_t row_bytes(sparkfp4_codes codes, int64_t cols) {
  return codes == SPARKFP4_E4M3 ? cols : codes == SPARKFP4_INT4 ? (cols + 7) / 8 * 4 : (cols + 1) / 2;
}

void put_scale(sparkfp4_scale_type type, Scales kind, Random &random, unsigned char *out) {
  if (type == SPARKFP4_SCALE_E8M0) {
    *out = static_cast<unsigned char>(kind == Scales::kAny ? random.below(255) : 110 + random.below(20));
    return;
  }

  // Of binary16: near 1.
  bool half = type == SPARKFP4_SCALE_F16;
  uint32_t exponent = kind == Scales::kAny && !half ? random.below(255) : (half ? 120 : 112) + random.below(8);
  uint32_t mantissa = kind == Scales::kPowers ? 0 : random.below(1u << 23);
  uint32_t sign = kind == Scales::kAny && random.below(8) == 0 ? 0x80000000u : 0;
  uint32_t bits = sign | exponent << 23 | mantissa;
  if (type == SPARKFP4_SCALE_F32) {
    std::memcpy(out, &bits, 4);
  } else if (type == SPARKFP4_SCALE_BF16) {
    uint16_t value = static_cast<uint16_t>(bits >> 16);
    std::memcpy(out, &value, 2);
  } else {
    uint16_t value = static_cast<uint16_t>(sign >> 16 | (exponent - 112) << 10 | mantissa >> 13);
    std::memcpy(out, &value, 2);
  }
}

// With NaN codes only where nan is true.
Unit draw_unit(sparkfp4_scheme scheme, Scales kind, int64_t cols, std::vector<int64_t> rows, bool nan, Random &random) {
  Unit unit = {scheme, cols, rows, {}, {}};
  int64_t run = scheme.block_cols == 0 ? cols : scheme.block_cols;
  int64_t row_scales = (cols + run - 1) / run;
  for (int64_t n : rows) {
    Bytes codes(n * row_bytes(scheme.codes, cols));
    for (size_t i = 0; i < codes.size(); i++) {
      codes[i] = static_cast<unsigned char>(random.next() >> 56);
      if (i / 16 % 3 == 0 && scheme.codes == SPARKFP4_E4M3) {
        codes[i] &= 0xbf;
      }

      if (i / 16 % 7 == 0) {
        codes[i] = random.below(2) ? 0x80 : 0;
      }

      if (scheme.codes == SPARKFP4_E4M3 && !nan && (codes[i] & 0x7f) == 0x7f) {
        codes[i] &= 0xfe;
      }
    }

    int64_t scale_rows = scheme.block_rows == 0 ? (n > 0 ? 1 : 0) : (n + scheme.block_rows - 1) / scheme.block_rows;
    Bytes scales(scale_rows * row_scales * scale_bytes(scheme.scales));
    for (size_t i = 0; i < scales.size(); i += scale_bytes(scheme.scales)) {
      put_scale(scheme.scales, kind, random, &scales[i]);
    }

    unit.codes.push_back(codes);
    unit.scales.push_back(scales);
  }

  return unit;
}

struct Call {
  sparkfp4_recipe recipe;
  sparkfp4_search search;
  const float *importance;
  int64_t importance_values;
  float global_scale;  // 0: of the unit
};

Encoded empty(const Unit &unit) {
  Encoded encoded = {};
  encoded.packed.resize(unit.elements() / 2);
  encoded.scales.resize(unit.elements() / 16);
  encoded.sums.resize(unit.rows.size());
  return encoded;
}

// By the CPU, a thread a segment.
Encoded expect(const Unit &unit, const Call &call) {
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

// The segments of a unit in device memory.
struct OnDevice {
  std::vector<DeviceBytes> memory;
  std::vector<sparkfp4_quantized_segment> segments;

  OnDevice(const Unit &unit, size_t offset) {
    for (size_t i = 0; i < unit.rows.size(); i++) {
      memory.emplace_back(unit.codes[i].size(), offset, unit.codes[i].data());
      const unsigned char *codes = memory.back().data();
      memory.emplace_back(unit.scales[i].size(), offset, unit.scales[i].data());
      segments.push_back({codes, memory.back().data(), unit.rows[i]});
    }
  }
};

// What an enqueued call writes.
struct Results {
  DeviceBytes packed;
  DeviceBytes scales;
  DeviceBytes sums;
  DeviceBytes outcome;
  DeviceBytes workspace;

  Results(const Unit &unit, size_t offset)
      : packed(unit.elements() / 2, offset), scales(unit.elements() / 16, offset),
        sums(unit.rows.size() * sizeof(sparkfp4_error_sums)), outcome(sizeof(sparkfp4_cuda_outcome)),
        workspace(sparkfp4_cuda_workspace_bytes(static_cast<int64_t>(unit.rows.size()))) {}

  sparkfp4_error_sums *device_sums() { return reinterpret_cast<sparkfp4_error_sums *>(sums.data()); }
  sparkfp4_cuda_outcome *device_outcome() { return reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data()); }

  Encoded read(const Unit &unit) {
    Encoded encoded = empty(unit);
    sparkfp4_cuda_outcome found;
    Bytes bytes = outcome.read();
    std::memcpy(&found, bytes.data(), sizeof found);
    encoded.status = static_cast<sparkfp4_cuda_status>(found.status);
    encoded.position = found.non_finite;
    encoded.requantized = found.requantized;
    encoded.amax = found.amax;
    encoded.packed = packed.read();
    encoded.scales = scales.read();
    bytes = sums.read();
    std::memcpy(encoded.sums.data(), bytes.data(), bytes.size());
    workspace.read();
    return encoded;
  }
};

std::string words(const Unit &unit, const Call &call) {
  char text[200];
  std::snprintf(text, sizeof text, "codes %d, scales %d, %ld x %ld, [%ld.. x %ld], recipe %d, search %d, scale %a",
                unit.scheme.codes, unit.scheme.scales, static_cast<long>(unit.scheme.block_rows),
                static_cast<long>(unit.scheme.block_cols), static_cast<long>(unit.rows.empty() ? 0 : unit.rows[0]),
                static_cast<long>(unit.cols), call.recipe, call.search, call.global_scale);
  return text;
}

void compare(sparkfp4_cuda_context *context, const Unit &unit, const Call &call, size_t offset) {
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
  Results results(unit, offset);
  DeviceBytes importance(call.importance_values * sizeof(float), 0, call.importance);
  choice.importance = call.importance == nullptr ? nullptr : reinterpret_cast<float *>(importance.data());
  sparkfp4_cuda_status status;
  if (call.global_scale == 0) {
    status = sparkfp4_cuda_enqueue_quantized_encode_unit(
        call.recipe, &choice, &unit.scheme, device.segments.data(), count, unit.cols, results.packed.data(),
        results.scales.data(), results.device_sums(), results.device_outcome(), results.workspace.data(), nullptr);
  } else {
    status = sparkfp4_cuda_enqueue_quantized_encode(call.recipe, &choice, &unit.scheme, device.segments.data(), count,
                                                    unit.cols, call.global_scale, results.packed.data(),
                                                    results.scales.data(), results.device_sums(),
                                                    results.device_outcome(), results.workspace.data(), nullptr);
  }

  require(status == SPARKFP4_CUDA_OK, "enqueue");
  require_same(expected, results.read(unit), "device: " + words(unit, call));
}

void compare_amax(sparkfp4_cuda_context *context, const Unit &unit) {
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

void compare_bf16(sparkfp4_cuda_context *context, const Unit &unit, size_t offset) {
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

Encoded expect_cast(const Unit &unit, sparkfp4_recipe recipe, int32_t kmax) {
  Encoded encoded = empty(unit);
  std::vector<sparkfp4_quantized_segment> segments = unit.segments();
  encoded.status = static_cast<sparkfp4_cuda_status>(
      sparkfp4_cast_mxfp4(sparkfp4_best_tier(), recipe, segments.data(), static_cast<int64_t>(segments.size()),
                          unit.cols, kmax, encoded.packed.data(), encoded.scales.data(), encoded.sums.data(),
                          &encoded.requantized, &encoded.position));
  return encoded;
}

void compare_cast(sparkfp4_cuda_context *context, const Unit &unit, sparkfp4_recipe recipe, int32_t kmax,
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
    Results results(unit, offset);
    require(sparkfp4_cuda_enqueue_cast_mxfp4(recipe, device.segments.data(), count, unit.cols, kmax,
                                             results.packed.data(), results.scales.data(),
                                             with_sums ? results.device_sums() : nullptr, results.device_outcome(),
                                             results.workspace.data(), nullptr) == SPARKFP4_CUDA_OK,
            "enqueue cast");
    Encoded actual = results.read(unit);
    if (!with_sums) {
      actual.sums = expected.sums;
    }

    require_same(expected, actual, "device: " + what);
  }
}

void compare_exponent(sparkfp4_cuda_context *context, const Unit &unit) {
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

void test_each_quantized(sparkfp4_cuda_context *context) {
  Random random(10);
  for (int codes = SPARKFP4_E4M3; codes <= SPARKFP4_E2M1; codes++) {
    for (size_t offset : {0, 4}) {
      sparkfp4_scheme scheme = {static_cast<sparkfp4_codes>(codes),
                                codes == SPARKFP4_E2M1 ? SPARKFP4_SCALE_E8M0 : SPARKFP4_SCALE_BF16, 1, 32};
      Unit unit = draw_unit(scheme, Scales::kUsual, 96, {37, 0, 190}, false, random);
      compare_amax(context, unit);
      compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, 0}, offset);
      compare(context, unit, {SPARKFP4_COMPRESSED_TENSORS, SPARKFP4_SWEEP, nullptr, 0, 0}, offset);
      compare_bf16(context, draw_unit(scheme, Scales::kUsual, 149, {41}, false, random), offset);
      if (codes == SPARKFP4_E4M3) {
        Unit strips = draw_unit({SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 128, 128}, Scales::kUsual, 768, {37, 0, 190}, false,
                                random);
        compare(context, strips, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, 0}, offset);
        compare(context, strips, {SPARKFP4_COMPRESSED_TENSORS, SPARKFP4_RTN, nullptr, 0, 0x1p9f}, offset);
      }

      if (codes == SPARKFP4_E2M1) {
        compare_exponent(context, unit);
        compare_cast(context, unit, SPARKFP4_MODELOPT, 2, offset);
        compare_cast(context, unit, SPARKFP4_MODELOPT, 18, offset);
      }
    }
  }
}

void test_quantized(sparkfp4_cuda_context *context) {
  Random random(6);
  const sparkfp4_scheme kSchemes[] = {
      {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 128, 128}, {SPARKFP4_E4M3, SPARKFP4_SCALE_BF16, 1, 0},
      {SPARKFP4_E4M3, SPARKFP4_SCALE_F32, 0, 0},     {SPARKFP4_E4M3, SPARKFP4_SCALE_E8M0, 16, 32},
      {SPARKFP4_E4M3, SPARKFP4_SCALE_F16, 48, 384},
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
        Unit unit = draw_unit(scheme, kind, cols, rows, false, random);
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

          Unit small = draw_unit(scheme, kind, cols, std::vector<int64_t>(8, 48), false, random);
          for (int search = SPARKFP4_FOUR_OVER_SIX; search <= SPARKFP4_WEIGHTED_HESSIAN; search++) {
            bool weighted = search >= SPARKFP4_WEIGHTED;
            Call call = {search % 2 == 0 ? SPARKFP4_MODELOPT : SPARKFP4_COMPRESSED_TENSORS,
                         static_cast<sparkfp4_search>(search), weighted ? importance.data() : nullptr,
                         weighted ? static_cast<int64_t>(importance.size()) : 0, 0};
            compare(context, small, call, 0);
          }
        }
      }

      Unit odd = draw_unit(scheme, kind, 16 * 9 + 5, {scheme.block_rows > 1 ? 300 : 41}, kind == Scales::kAny, random);
      compare_bf16(context, odd, 0);
      compare_bf16(context, odd, 1);
      compare_bf16(context, draw_unit(scheme, kind, 4096, {257}, false, random), 0);
    }

    // Codes and scales that are not finite.
    for (int i = 0; i < 6; i++) {
      Unit unit = draw_unit(scheme, Scales::kUsual, 336, {128, 256}, i % 2 == 0, random);
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
    Unit unit = draw_unit(scheme, Scales::kUsual, cols, {96, 0, 64 + i % 33}, false, random);
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

void test_mxfp4(sparkfp4_cuda_context *context) {
  Random random(7);
  sparkfp4_scheme scheme = {SPARKFP4_E2M1, SPARKFP4_SCALE_E8M0, 1, 32};
  // Scales above the largest, all of them or one alone, with no other fault.
  for (int i = 0; i < 12; i++) {
    Unit unit = draw_unit(scheme, Scales::kUsual, i % 2 == 0 ? 96 : 4096, {40, 7}, false, random);
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
    Unit unit = draw_unit(scheme, Scales::kUsual, cols, {i % 2 == 0 ? 300 : 41, 0, 129}, false, random);
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
