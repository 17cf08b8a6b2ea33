// Searches for block scales, of BF16, F16 and F32 sources.
#include "plain.h"

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
        PlainUnit unit =
            draw_unit(dtype, static_cast<Kind>(kind), 160, std::vector<int64_t>(16, hessian ? 19 : 83), random);
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
  PlainUnit unit = draw_unit(SPARKFP4_BF16, Kind::kNormal, 64, std::vector<int64_t>(16, 250), random);
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
    PlainUnit unit = draw_unit(dtype, Kind::kNormal, 64, std::vector<int64_t>(4, 96), random);
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
