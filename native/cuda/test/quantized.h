// What the tests of quantized sources share: units, where they lie and what calls make of them.
#pragma once

#include "check.h"

struct QuantizedUnit {
  sparkfp4_scheme scheme;
  int64_t cols;
  std::vector<int64_t> rows;
  std::vector<Bytes> codes;
  std::vector<Bytes> scales;

  int64_t elements() const { return elements_of(rows, cols); }

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
