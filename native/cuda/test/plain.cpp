// BF16, F16 and F32 sources under all recipes, and searches.
#include <thread>

#include "check.h"

namespace {

struct Unit {
  sparkfp4_dtype dtype;
  int64_t cols;
  std::vector<int64_t> rows;
  std::vector<Bytes> data;

  int64_t elements() const {
    int64_t all = 0;
    for (int64_t n : rows) {
      all += n * cols;
    }

    return all;
  }
};

struct Call {
  sparkfp4_recipe recipe;
  sparkfp4_search search;
  const std::vector<float> *importance;
  float global_scale;  // 0: of the unit
  bool with_sums;
};

Unit draw_unit(sparkfp4_dtype dtype, Kind kind, int64_t cols, std::vector<int64_t> rows, Random &random) {
  Unit unit = {dtype, cols, rows, {}};
  for (int64_t n : rows) {
    unit.data.push_back(draw(dtype, kind, n * cols, cols, random));
  }

  return unit;
}

Encoded empty(const Unit &unit, bool with_sums) {
  Encoded encoded = {};
  encoded.packed.resize(unit.elements() / 2);
  encoded.scales.resize(unit.elements() / 16);
  encoded.sums.resize(with_sums ? unit.rows.size() : 0);
  return encoded;
}

std::vector<sparkfp4_segment> segments_of(const Unit &unit, bool rows) {
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
Encoded expect(const Unit &unit, const Call &call) {
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

Encoded through_host(sparkfp4_cuda_context *context, const Unit &unit, const Call &call) {
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

// offset: of all addresses from aligned ones.
Encoded through_device(const Unit &unit, const Call &call, size_t offset) {
  Encoded encoded = empty(unit, call.with_sums);
  std::vector<DeviceBytes> data;
  std::vector<sparkfp4_segment> segments;
  for (size_t i = 0; i < unit.rows.size(); i++) {
    data.emplace_back(unit.data[i].size(), offset, unit.data[i].data());
    segments.push_back({data[i].data(), unit.rows[i]});
  }

  int64_t count = static_cast<int64_t>(segments.size());
  DeviceBytes packed(encoded.packed.size(), offset);
  DeviceBytes scales(encoded.scales.size(), offset);
  DeviceBytes sums(count * sizeof(sparkfp4_error_sums));
  DeviceBytes outcome(sizeof(sparkfp4_cuda_outcome));
  DeviceBytes workspace(sparkfp4_cuda_workspace_bytes(count));
  size_t values = call.importance == nullptr ? 0 : call.importance->size();
  DeviceBytes importance(values * sizeof(float), 0, values == 0 ? nullptr : call.importance->data());
  sparkfp4_cuda_choice choice = {call.search, values == 0 ? nullptr : reinterpret_cast<float *>(importance.data())};
  auto *device_sums = call.with_sums ? reinterpret_cast<sparkfp4_error_sums *>(sums.data()) : nullptr;
  auto *device_outcome = reinterpret_cast<sparkfp4_cuda_outcome *>(outcome.data());
  sparkfp4_cuda_status status;
  if (call.global_scale == 0) {
    status = sparkfp4_cuda_enqueue_encode_unit(call.recipe, &choice, unit.dtype, segments.data(), count, unit.cols,
                                               packed.data(), scales.data(), device_sums, device_outcome,
                                               workspace.data(), nullptr);
  } else {
    status = sparkfp4_cuda_enqueue_encode(call.recipe, &choice, unit.dtype, segments.data(), count, unit.cols,
                                          call.global_scale, packed.data(), scales.data(), device_sums, device_outcome,
                                          workspace.data(), nullptr);
  }

  require(status == SPARKFP4_CUDA_OK, "enqueue");
  sparkfp4_cuda_outcome found;
  Bytes read = outcome.read();
  std::memcpy(&found, read.data(), sizeof found);
  encoded.status = static_cast<sparkfp4_cuda_status>(found.status);
  encoded.position = found.non_finite;
  encoded.amax = found.amax;
  encoded.packed = packed.read();
  encoded.scales = scales.read();
  if (call.with_sums) {
    read = sums.read();
    std::memcpy(encoded.sums.data(), read.data(), read.size());
  }

  workspace.read();
  for (const DeviceBytes &bytes : data) {
    bytes.read();
  }

  return encoded;
}

std::string words(const Unit &unit, const Call &call) {
  char text[160];
  std::snprintf(text, sizeof text, "dtype %d, [%ld.. x %ld], recipe %d, search %d, scale %a, sums %d", unit.dtype,
                static_cast<long>(unit.rows.empty() ? 0 : unit.rows[0]), static_cast<long>(unit.cols), call.recipe,
                call.search, call.global_scale, call.with_sums);
  return text;
}

void compare(sparkfp4_cuda_context *context, const Unit &unit, const Call &call, size_t offset) {
  Encoded expected = expect(unit, call);
  Encoded on_device = through_device(unit, call, offset);
  require_same(expected, on_device, "device: " + words(unit, call));
  if (call.global_scale == 0 && expected.status == SPARKFP4_CUDA_OK) {
    require(expected.amax == on_device.amax, "amax of the unit");
  }

  require_same(expected, through_host(context, unit, call), "host: " + words(unit, call));
}

void compare_amax(sparkfp4_cuda_context *context, const Unit &unit, size_t offset) {
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

const sparkfp4_dtype kTypes[] = {SPARKFP4_BF16, SPARKFP4_F16, SPARKFP4_F32};
const sparkfp4_recipe kRecipes[] = {SPARKFP4_MODELOPT, SPARKFP4_COMPRESSED_TENSORS};

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

}  // namespace

void test_each_plain(sparkfp4_cuda_context *context) {
  Random random(9);
  for (sparkfp4_dtype dtype : kTypes) {
    for (size_t offset : {0, 4}) {
      Unit unit = draw_unit(dtype, Kind::kRowScales, 48, {37, 0, 190}, random);
      compare_amax(context, unit, offset);
      for (int search = SPARKFP4_RTN; search <= SPARKFP4_WEIGHTED_HESSIAN; search++) {
        sparkfp4_search kind = static_cast<sparkfp4_search>(search);
        std::vector<float> importance = draw_importance(kind, 48, random);
        const std::vector<float> *h = search >= SPARKFP4_WEIGHTED ? &importance : nullptr;
        compare(context, unit, {kRecipes[search % 2], kind, h, 0, true}, offset);
        compare(context, unit, {kRecipes[search % 2], kind, h, 0x1p-9f, offset == 0}, offset);
      }
    }
  }
}

void test_plain(sparkfp4_cuda_context *context) {
  Random random(1);
  for (sparkfp4_dtype dtype : kTypes) {
    for (int kind = 0; kind < static_cast<int>(Kind::kCount); kind++) {
      for (int shape = 0; shape < 3; shape++) {
        int64_t cols = shape == 0 ? 16 : shape == 1 ? 2048 : 7168;
        std::vector<int64_t> rows = shape == 0 ? std::vector<int64_t>{1, 0, 77, 5000}
                                    : shape == 1 ? std::vector<int64_t>{130, 257}
                                                 : std::vector<int64_t>{31};
        Unit unit = draw_unit(dtype, static_cast<Kind>(kind), cols, rows, random);
        size_t offset = shape == 2 ? (dtype == SPARKFP4_F32 ? 4 : 6) : 0;
        compare_amax(context, unit, offset);
        for (sparkfp4_recipe recipe : kRecipes) {
          compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, true}, offset);
          compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, 0, false}, shape == 1 ? 3 : offset);
          for (int i = 0; i < 12; i++) {
            // Plain numbers, where quotients tie; any; and those beyond the shortcuts' range.
            uint32_t exponent = i < 8 ? 100 + random.below(30) : random.below(254);
            uint32_t mantissa = i % 4 == 0 ? 0 : i % 4 == 1 ? random.below(128) << 16 : random.below(1u << 23);
            float scale = bits_float((exponent + 1) << 23 | mantissa);
            compare(context, unit, {recipe, SPARKFP4_RTN, nullptr, scale, i % 2 == 0}, offset);
          }
        }
      }
    }

    Unit many = draw_unit(dtype, Kind::kRowScales, 48, std::vector<int64_t>(37, 11), random);
    compare(context, many, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, true}, 0);
    Unit none = draw_unit(dtype, Kind::kNormal, 32, {}, random);
    compare(context, none, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, true}, 0);
    Unit zero = draw_unit(dtype, Kind::kNormal, 32, {3, 5}, random);
    for (Bytes &bytes : zero.data) {
      std::fill(bytes.begin(), bytes.end(), 0);
    }

    for (sparkfp4_recipe recipe : kRecipes) {
      compare(context, zero, {recipe, SPARKFP4_RTN, nullptr, 0, true}, 0);
      compare(context, zero, {recipe, SPARKFP4_SWEEP, nullptr, 0, true}, 0);
    }

    // One element that is not finite, or two, anywhere.
    for (int i = 0; i < 30; i++) {
      Unit unit = draw_unit(dtype, Kind::kNormal, 128, {40, 300}, random);
      for (int j = 0; j <= i % 2; j++) {
        Bytes &bytes = unit.data[random.below(2)];
        size_t size = element_bytes(dtype);
        size_t at = random.below(static_cast<uint32_t>(bytes.size() / size)) * size + size - 2;
        bytes[at] = dtype == SPARKFP4_F16 ? (i % 3 == 0 ? 0 : 1) : 0x80 | (i % 3 == 0 ? 0 : 1);
        bytes[at + 1] = (dtype == SPARKFP4_F16 ? 0x7c : 0x7f) | (i % 5 == 0 ? 0x80 : 0);
      }

      compare_amax(context, unit, 0);
      compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, i % 4 == 0 ? 1e-4f : 0, true}, 0);
      compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_SWEEP, nullptr, i % 4 == 0 ? 1e-4f : 0, true}, 0);
    }
  }
}

void test_all_bf16(sparkfp4_cuda_context *context) {
  Random random(2);
  Unit unit = {SPARKFP4_BF16, 65536, {16}, {Bytes(2 * 16 * 65536)}};
  uint16_t *elements = reinterpret_cast<uint16_t *>(unit.data[0].data());
  for (int i = 0; i < 16 * 65536; i++) {
    // Each row has all elements, those of a block sixteen apart in another order each.
    uint16_t bits = static_cast<uint16_t>((i % 65536) * (2 * (i / 65536) + 1) + i / 65536);
    elements[i] = (bits & 0x7f80) == 0x7f80 ? bits & 0xbfff : bits;
  }

  for (int i = 0; i < 600; i++) {
    uint32_t mantissa = i % 3 == 0 ? random.below(128) << 16 : random.below(1u << 23);
    float scale = bits_float((64 + random.below(100)) << 23 | mantissa);
    compare(context, unit, {kRecipes[i % 2], SPARKFP4_RTN, nullptr, scale, i % 8 == 0}, 0);
  }
}

void test_search(sparkfp4_cuda_context *context) {
  Random random(3);
  const sparkfp4_search kSearches[] = {SPARKFP4_FOUR_OVER_SIX, SPARKFP4_SWEEP, SPARKFP4_WEIGHTED,
                                       SPARKFP4_WEIGHTED_HESSIAN};
  for (sparkfp4_search search : kSearches) {
    bool hessian = search == SPARKFP4_WEIGHTED_HESSIAN;
    bool weighted = hessian || search == SPARKFP4_WEIGHTED;
    std::vector<float> importance = weighted ? draw_importance(search, 160, random) : std::vector<float>();
    for (sparkfp4_dtype dtype : kTypes) {
      for (int kind = 0; kind < static_cast<int>(Kind::kCount); kind++) {
        Unit unit = draw_unit(dtype, static_cast<Kind>(kind), 160, std::vector<int64_t>(16, hessian ? 19 : 83), random);
        for (sparkfp4_recipe recipe : kRecipes) {
          const std::vector<float> *h = weighted ? &importance : nullptr;
          compare(context, unit, {recipe, search, h, 0, true}, 0);
          for (int i = 0; i < 4; i++) {
            float scale = bits_float((i < 2 ? 105 + random.below(22) : 1 + random.below(253)) << 23 |
                                     (i % 2 == 0 ? random.below(128) << 16 : random.below(1u << 23)));
            compare(context, unit, {recipe, search, h, scale, i == 0}, i == 1 ? 4 : 0);
          }
        }
      }
    }
  }

  // Blocks whose elements are all alike but for one, of global scales near theirs: ties between candidates.
  Unit unit = draw_unit(SPARKFP4_BF16, Kind::kNormal, 64, std::vector<int64_t>(16, 250), random);
  for (Bytes &bytes : unit.data) {
    uint16_t *elements = reinterpret_cast<uint16_t *>(bytes.data());
    for (size_t i = 0; i < bytes.size() / 2; i += 16) {
      uint16_t first = static_cast<uint16_t>(0x3c00 + random.below(0x300));
      uint16_t second = static_cast<uint16_t>(0x3c00 + random.below(0x300));
      uint32_t cut = random.below(17);
      for (size_t j = 0; j < 16; j++) {
        elements[i + j] = j < cut ? first : second;
      }
    }
  }

  for (int i = 0; i < 16; i++) {
    uint32_t mantissa = i % 2 == 0 ? random.below(16) << 19 : random.below(1u << 23);
    float scale = bits_float((112 + random.below(8)) << 23 | mantissa);
    sparkfp4_search search = i % 4 == 3 ? SPARKFP4_FOUR_OVER_SIX : SPARKFP4_SWEEP;
    compare(context, unit, {kRecipes[i / 8], search, nullptr, scale, true}, 0);
  }
}

// Blocks on both sides of the sizes that are searched; importance that weighs nothing, or makes no loss finite.
void test_search_limits(sparkfp4_cuda_context *context) {
  Random random(12);
  const uint32_t kAmaxes[] = {0,         1u << 23,  76u << 23, 0x267fffffu, 77u << 23, 0x26800001u,
                              120u << 23, 186u << 23, 0x5d7fffffu, 187u << 23, 0x5d800001u, 200u << 23};
  for (sparkfp4_dtype dtype : {SPARKFP4_BF16, SPARKFP4_F32}) {
    Unit unit = draw_unit(dtype, Kind::kNormal, 64, std::vector<int64_t>(4, 96), random);
    uint32_t drop = dtype == SPARKFP4_BF16 ? 16 : 0;
    for (Bytes &bytes : unit.data) {
      for (size_t i = 0; i < bytes.size() / element_bytes(dtype); i++) {
        float amax = bits_float(kAmaxes[i / 16 % 12]);
        uint32_t bits = float_bits(i % 16 == 3 ? amax : amax * random.uniform()) | random.below(2) << 31;
        bits >>= drop;
        std::memcpy(&bytes[i * element_bytes(dtype)], &bits, element_bytes(dtype));
      }
    }

    for (int search = SPARKFP4_FOUR_OVER_SIX; search <= SPARKFP4_WEIGHTED_HESSIAN; search++) {
      sparkfp4_search kind = static_cast<sparkfp4_search>(search);
      for (float size : {0.0f, 1.0f, 0x1p-140f, 0x1p120f}) {
        std::vector<float> importance;
        if (search >= SPARKFP4_WEIGHTED) {
          importance = draw_importance(kind, 64, random);
          for (float &h : importance) {
            h *= size;
          }
        }

        const std::vector<float> *h = importance.empty() ? nullptr : &importance;
        for (sparkfp4_recipe recipe : kRecipes) {
          compare(context, unit, {recipe, kind, h, 0, true}, 0);
          for (float scale : {0x1p-60f, 0x1p-12f, 0x1p40f}) {
            compare(context, unit, {recipe, kind, h, recipe == SPARKFP4_MODELOPT ? scale : 1 / scale, true}, 0);
          }
        }
      }
    }
  }
}

// Squares so far apart that the order of the sums matters.
void test_sums_in_order(sparkfp4_cuda_context *context) {
  Random random(4);
  for (int i = 0; i < 6; i++) {
    Unit unit = draw_unit(i % 2 == 0 ? SPARKFP4_BF16 : SPARKFP4_F32, Kind::kNormal, 4096, {3000, 17, 260}, random);
    for (Bytes &bytes : unit.data) {
      size_t size = element_bytes(unit.dtype);
      size_t blocks = bytes.size() / size / 16;
      for (size_t block = 0; block < blocks; block++) {
        uint32_t down = random.below(i < 2 ? 40 : 12);
        for (size_t j = 0; j < 16; j++) {
          unsigned char *high = &bytes[(block * 16 + j) * size + size - 2];
          uint32_t bits = high[0] | high[1] << 8;
          uint32_t exponent = bits >> 7 & 0xff;
          exponent = exponent > down ? exponent - down : 0;
          bits = (bits & 0x807f) | exponent << 7;
          high[0] = static_cast<unsigned char>(bits);
          high[1] = static_cast<unsigned char>(bits >> 8);
        }
      }
    }

    compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, true}, i == 5 ? 2 : 0);
  }
}

// More elements than 32 bits count.
void test_large(sparkfp4_cuda_context *context) {
  int64_t cols = 4096;
  int64_t rows = (int64_t{1} << 31) / cols + 4099;
  Random random(5);
  Unit unit = {SPARKFP4_BF16, cols, {rows}, {Bytes(2 * rows * cols)}};
  Unit pattern = draw_unit(SPARKFP4_BF16, Kind::kRowScales, cols, {997}, random);
  Bytes &bytes = unit.data[0];
  for (size_t at = 0; at < bytes.size(); at += pattern.data[0].size()) {
    std::memcpy(&bytes[at], pattern.data[0].data(), std::min(pattern.data[0].size(), bytes.size() - at));
  }

  // What is behind 2^31 elements is unlike all before.
  uint64_t *words = reinterpret_cast<uint64_t *>(bytes.data() + 2 * ((int64_t{1} << 31) - 64));
  uint64_t *end = reinterpret_cast<uint64_t *>(bytes.data() + bytes.size());
  for (; words < end; words++) {
    *words = (random.next() & 0x807f807f807f807f) | 0x3c003c003c003c00;
  }

  compare(context, unit, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, true}, 0);
  size_t last = bytes.size() - 2 * 5;
  bytes[last] = 0x80;
  bytes[last + 1] = 0x7f;
  compare_amax(context, unit, 0);
}
