#include "plain.h"

#include <thread>

namespace {

Encoded empty(const PlainUnit &unit, bool with_sums) {
  Encoded encoded = {};
  encoded.packed.resize(unit.elements() / 2);
  encoded.scales.resize(unit.elements() / 16);
  encoded.sums.resize(with_sums ? unit.rows.size() : 0);
  return encoded;
}

std::vector<sparkfp4_segment> segments_of(const PlainUnit &unit, bool rows) {
  std::vector<sparkfp4_segment> segments;
  for (size_t i = 0; i < unit.rows.size(); i++) {
    segments.push_back({unit.data[i].data(), rows ? unit.rows[i] : unit.rows[i] * unit.cols});
  }

  return segments;
}

float scale_of(sparkfp4_recipe recipe, sparkfp4_search search, sparkfp4_dtype dtype, float amax) {
  auto bf16 = [](float x) {
    uint32_t bits = float_bits(x);
    return bits_float((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
  };
  if (recipe == SPARKFP4_MODELOPT) {
    return amax / (search == SPARKFP4_RTN ? 2688.0f : 1536.0f);
  }

  if (search != SPARKFP4_RTN) {
    return 1536.0f / amax;
  }

  return dtype == SPARKFP4_BF16 ? bf16(bf16(1.0f / amax) * 2688.0f) : 1.0f / amax * 2688.0f;
}

// By the CPU, a thread a segment.
Encoded expect(const PlainUnit &unit, const PlainCall &call) {
  Encoded encoded = empty(unit, call.with_sums);
  sparkfp4_tier tier = sparkfp4_best_tier();
  float global_scale = call.global_scale;
  std::vector<sparkfp4_segment> elements = segments_of(unit, false);
  sparkfp4_status status = sparkfp4_amax(tier, unit.dtype, elements.data(), static_cast<int64_t>(elements.size()),
                                         &encoded.amax, &encoded.position);
  encoded.status = static_cast<sparkfp4_cuda_status>(status);
  if (status != SPARKFP4_OK) {
    return encoded;
  }

  if (global_scale == 0) {
    if (encoded.amax < 2688.0f * 0x1p-126f) {
      std::memset(encoded.scales.data(), call.recipe == SPARKFP4_MODELOPT ? 0x38 : 0x20, encoded.scales.size());
      return encoded;
    }

    global_scale = scale_of(call.recipe, call.search, unit.dtype, encoded.amax);
  }

  std::vector<std::thread> threads;
  std::vector<sparkfp4_segment> segments = segments_of(unit, true);
  int64_t block = 0;
  for (size_t i = 0; i < segments.size(); i++) {
    threads.emplace_back([&, i, block] {
      sparkfp4_position position;
      sparkfp4_encode(tier, call.recipe, call.search, call.importance == nullptr ? nullptr : call.importance->data(),
                      unit.dtype, &segments[i], 1, unit.cols, global_scale, encoded.packed.data() + 8 * block,
                      encoded.scales.data() + block, call.with_sums ? &encoded.sums[i] : nullptr, &position);
    });
    block += unit.rows[i] * unit.cols / 16;
  }

  for (std::thread &thread : threads) {
    thread.join();
  }

  return encoded;
}

Encoded through_host(sparkfp4_cuda_context *context, const PlainUnit &unit, const PlainCall &call) {
  Encoded encoded = empty(unit, call.with_sums);
  std::vector<sparkfp4_segment> segments = segments_of(unit, true);
  sparkfp4_cuda_choice choice = {call.search, call.importance == nullptr ? nullptr : call.importance->data()};
  sparkfp4_error_sums *sums = call.with_sums ? encoded.sums.data() : nullptr;
  int64_t count = static_cast<int64_t>(segments.size());
  if (call.global_scale == 0) {
    encoded.status = sparkfp4_cuda_encode_unit(context, call.recipe, &choice, unit.dtype, segments.data(), count,
                                               unit.cols, encoded.packed.data(), encoded.scales.data(), sums,
                                               &encoded.amax, &encoded.position);
  } else {
    encoded.status = sparkfp4_cuda_encode(context, call.recipe, &choice, unit.dtype, segments.data(), count, unit.cols,
                                          call.global_scale, encoded.packed.data(), encoded.scales.data(), sums,
                                          &encoded.position);
  }

  return encoded;
}

Encoded through_device(const PlainUnit &unit, const PlainCall &call, size_t offset) {
  std::vector<DeviceBytes> data;
  std::vector<sparkfp4_segment> segments;
  for (size_t i = 0; i < unit.rows.size(); i++) {
    data.emplace_back(unit.data[i].size(), offset, unit.data[i].data());
    segments.push_back({data[i].data(), unit.rows[i]});
  }

  int64_t count = static_cast<int64_t>(segments.size());
  Results results(unit.elements(), segments.size(), offset);
  size_t values = call.importance == nullptr ? 0 : call.importance->size();
  DeviceBytes importance(values * sizeof(float), 0, values == 0 ? nullptr : call.importance->data());
  sparkfp4_cuda_choice choice = {call.search, values == 0 ? nullptr : reinterpret_cast<float *>(importance.data())};
  sparkfp4_error_sums *sums = call.with_sums ? results.device_sums() : nullptr;
  sparkfp4_cuda_status status;
  if (call.global_scale == 0) {
    status = sparkfp4_cuda_enqueue_encode_unit(call.recipe, &choice, unit.dtype, segments.data(), count, unit.cols,
                                               results.packed.data(), results.scales.data(), sums,
                                               results.device_outcome(), results.workspace.data(), nullptr);
  } else {
    status = sparkfp4_cuda_enqueue_encode(call.recipe, &choice, unit.dtype, segments.data(), count, unit.cols,
                                          call.global_scale, results.packed.data(), results.scales.data(), sums,
                                          results.device_outcome(), results.workspace.data(), nullptr);
  }

  require(status == SPARKFP4_CUDA_OK, "enqueue");
  Encoded encoded = results.read();
  for (const DeviceBytes &bytes : data) {
    bytes.read();
  }

  return encoded;
}

std::string words(const PlainUnit &unit, const PlainCall &call) {
  char text[160];
  std::snprintf(text, sizeof text, "dtype %d, [%ld.. x %ld], recipe %d, search %d, scale %a, sums %d", unit.dtype,
                static_cast<long>(unit.rows.empty() ? 0 : unit.rows[0]), static_cast<long>(unit.cols), call.recipe,
                call.search, call.global_scale, call.with_sums);
  return text;
}

}  // namespace

PlainUnit draw_unit(sparkfp4_dtype dtype, Kind kind, int64_t cols, std::vector<int64_t> rows, Random &random) {
  PlainUnit unit = {dtype, cols, rows, {}};
  for (int64_t n : rows) {
    unit.data.push_back(draw(dtype, kind, n * cols, cols, random));
  }

  return unit;
}

std::vector<float> draw_importance(sparkfp4_search search, int64_t cols, Random &random) {
  std::vector<float> values(search == SPARKFP4_WEIGHTED ? cols : 16 * cols);
  for (size_t i = 0; i < values.size(); i++) {
    float x = random.normal();
    if (search == SPARKFP4_WEIGHTED) {
      // A block of zeros, and single ones.
      values[i] = i / 16 % 5 == 1 || random.below(20) == 0 ? 0.0f : x * x;
    } else {
      size_t block = i / 256;
      bool diagonal = i / 16 % 16 == i % 16;
      values[i] = block % 5 == 1 ? 0.0f : diagonal ? 1 + x * x : 0.3f * x;
    }
  }

  return values;
}

void compare(sparkfp4_cuda_context *context, const PlainUnit &unit, const PlainCall &call, size_t offset) {
  Encoded expected = expect(unit, call);
  Encoded on_device = through_device(unit, call, offset);
  require_same(expected, on_device, "device: " + words(unit, call));
  if (call.global_scale == 0 && expected.status == SPARKFP4_CUDA_OK) {
    require(expected.amax == on_device.amax, "amax of the unit");
  }

  require_same(expected, through_host(context, unit, call), "host: " + words(unit, call));
}

void compare_amax(sparkfp4_cuda_context *context, const PlainUnit &unit, size_t offset) {
  float expected;
  float actual;
  sparkfp4_position expected_at = {};
  sparkfp4_position actual_at = {};
  std::vector<sparkfp4_segment> segments = segments_of(unit, false);
  int64_t count = static_cast<int64_t>(segments.size());
  sparkfp4_status status = sparkfp4_amax(sparkfp4_best_tier(), unit.dtype, segments.data(), count, &expected,
                                         &expected_at);
  int other = sparkfp4_cuda_amax(context, unit.dtype, segments.data(), count, &actual, &actual_at);
  require(status == static_cast<sparkfp4_status>(other), "amax: status");
  require(status != SPARKFP4_OK || expected == actual, "amax: value");
  require(status == SPARKFP4_OK ||
              (expected_at.segment == actual_at.segment && expected_at.index == actual_at.index),
          "amax: position");
  std::vector<DeviceBytes> data;
  for (size_t i = 0; i < unit.rows.size(); i++) {
    data.emplace_back(unit.data[i].size(), offset, unit.data[i].data());
    segments[i].data = data[i].data();
  }

  DeviceBytes outcome(sizeof(sparkfp4_cuda_outcome));
  DeviceBytes workspace(sparkfp4_cuda_workspace_bytes(count));
  require(sparkfp4_cuda_enqueue_amax(unit.dtype, segments.data(), count,
                                     reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data()), workspace.data(),
                                     nullptr) == SPARKFP4_CUDA_OK,
          "enqueue amax");
  Bytes read = outcome.read();
  sparkfp4_cuda_outcome found;
  std::memcpy(&found, read.data(), sizeof found);
  require(found.status == static_cast<int>(status) && (status != SPARKFP4_OK || found.amax == expected),
          "amax on the device");
}
