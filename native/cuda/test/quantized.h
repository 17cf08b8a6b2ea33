// What the tests of quantized sources share: units, where they lie and what calls make of them.
#pragma once

#include "check.h"

struct QuantizedUnit {
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

int scale_bytes(sparkfp4_scale_type type);

// With NaN codes only where nan is true.
QuantizedUnit draw_unit(sparkfp4_scheme scheme, Scales kind, int64_t cols, std::vector<int64_t> rows, bool nan,
                        Random &random);

// Room for what a call writes.
Encoded empty(const QuantizedUnit &unit);

// The segments of a unit in device memory.
struct OnDevice {
  std::vector<DeviceBytes> memory;
  std::vector<sparkfp4_quantized_segment> segments;

  OnDevice(const QuantizedUnit &unit, size_t offset) {
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

  Results(const QuantizedUnit &unit, size_t offset)
      : packed(unit.elements() / 2, offset), scales(unit.elements() / 16, offset),
        sums(unit.rows.size() * sizeof(sparkfp4_error_sums)), outcome(sizeof(sparkfp4_cuda_outcome)),
        workspace(sparkfp4_cuda_workspace_bytes(static_cast<int64_t>(unit.rows.size()))) {}

  sparkfp4_error_sums *device_sums() { return reinterpret_cast<sparkfp4_error_sums *>(sums.data()); }
  sparkfp4_cuda_outcome *device_outcome() { return reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data()); }

  Encoded read(const QuantizedUnit &unit) {
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
