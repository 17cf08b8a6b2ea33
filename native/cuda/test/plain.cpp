// BF16, F16 and F32 sources under all recipes, and every search once.
#include "plain.h"

void test_each_plain(sparkfp4_cuda_context *context) {
  Random random(9);
  for (sparkfp4_dtype dtype : kTypes) {
    for (size_t offset : {0, 4}) {
      PlainUnit unit = draw_unit(dtype, Kind::kRowScales, 48, {37, 0, 190}, random);
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
        PlainUnit unit = draw_unit(dtype, static_cast<Kind>(kind), cols, rows, random);
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

    PlainUnit many = draw_unit(dtype, Kind::kRowScales, 48, std::vector<int64_t>(37, 11), random);
    compare(context, many, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, true}, 0);
    PlainUnit none = draw_unit(dtype, Kind::kNormal, 32, {}, random);
    compare(context, none, {SPARKFP4_MODELOPT, SPARKFP4_RTN, nullptr, 0, true}, 0);
    PlainUnit zero = draw_unit(dtype, Kind::kNormal, 32, {3, 5}, random);
    for (Bytes &bytes : zero.data) {
      std::fill(bytes.begin(), bytes.end(), 0);
    }

    for (sparkfp4_recipe recipe : kRecipes) {
      compare(context, zero, {recipe, SPARKFP4_RTN, nullptr, 0, true}, 0);
      compare(context, zero, {recipe, SPARKFP4_SWEEP, nullptr, 0, true}, 0);
    }

    // One element that is not finite, or two, anywhere.
    for (int i = 0; i < 30; i++) {
      PlainUnit unit = draw_unit(dtype, Kind::kNormal, 128, {40, 300}, random);
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
  PlainUnit unit = {SPARKFP4_BF16, 65536, {16}, {Bytes(2 * 16 * 65536)}};
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

// Squares so far apart that the order of the sums matters.
void test_sums_in_order(sparkfp4_cuda_context *context) {
  Random random(4);
  for (int i = 0; i < 6; i++) {
    PlainUnit unit = draw_unit(i % 2 == 0 ? SPARKFP4_BF16 : SPARKFP4_F32, Kind::kNormal, 4096, {3000, 17, 260}, random);
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
  PlainUnit unit = {SPARKFP4_BF16, cols, {rows}, {Bytes(2 * rows * cols)}};
  PlainUnit pattern = draw_unit(SPARKFP4_BF16, Kind::kRowScales, cols, {997}, random);
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
