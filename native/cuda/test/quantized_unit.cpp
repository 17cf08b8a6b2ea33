#include "quantized.h"

int scale_bytes(sparkfp4_scale_type type) {
  return type == SPARKFP4_SCALE_F32 ? 4 : type == SPARKFP4_SCALE_E8M0 ? 1 : 2;
}

namespace {

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

}  // namespace

QuantizedUnit draw_unit(sparkfp4_scheme scheme, Scales kind, int64_t cols, std::vector<int64_t> rows, bool nan,
                        Random &random) {
  QuantizedUnit unit = {scheme, cols, rows, {}, {}};
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

Encoded empty(const QuantizedUnit &unit) {
  Encoded encoded = {};
  encoded.packed.resize(unit.elements() / 2);
  encoded.scales.resize(unit.elements() / 16);
  encoded.sums.resize(unit.rows.size());
  return encoded;
}
