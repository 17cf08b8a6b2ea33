// Sources of few codes: what becomes of a block of INT4 or E2M1 depends on its source scale, on the magnitude of its
// largest code and on nothing else but the call's global scale. A tensor has some hundreds of such pairs, and millions of
// blocks: each pair's outcome is found once a call, element by element as the scalar tier does it, and kept.
#pragma once

#include <cstdlib>

#include "arithmetic.h"

namespace sparkfp4 {

// One cache line: what a vector reads of it beyond the errors is never chosen.
struct alignas(64) BlockTable {
  float errors[9];          // by the magnitude of a code, see make_table(): the square of w - e2m1(code) * d
  unsigned char codes[16];  // E2M1, by the source's code
  uint32_t key;
};
static_assert(sizeof(BlockTable) == 64, "one cache line");

// A key is the source's scale, bfloat16 or a power of two as binary32, the largest magnitude, and, once there is a table,
// the block's scale as E4M3. No block has the key of all ones.
constexpr uint32_t kKeyMagnitude = 0xf;
constexpr uint32_t kKeyByte = 0xff00;

// The bits of an INT4 or E2M1 source's scale that a table's place has room for, and three of the largest magnitude: of
// bfloat16 the mantissa and two of the exponent, so that four octaves next to each other do not meet.
template <typename Type>
constexpr int kPlaceShift = Type::kSource == Int4::kSource ? 13 : 20;
constexpr int kPlaces = 4096;
constexpr uint32_t kScaleOfPlace = kPlaces - 8;

// The tables of a call, each at the one place that its key has. A call of other tensors starts anew.
struct CodeTables {
  BlockTable tables[kPlaces];
  // Tables that may yet be made before the tables have to prove worth it, which blocks that find theirs do.
  int32_t credit;
  // Groups of strips for which they are not asked.
  int32_t pause;

  void clear() {
    // A table of no block is looked up, too, before its key is.
    std::memset(tables, 0xff, sizeof tables);
    credit = kPlaces;
    pause = 0;
  }
};

// Those of a call, on the heap; none where it has no room, or where they are not wanted.
class OwnedTables {
 public:
  explicit OwnedTables(bool wanted)
      : tables_(wanted ? static_cast<CodeTables *>(std::aligned_alloc(alignof(CodeTables), sizeof(CodeTables)))
                       : nullptr) {
    if (tables_ != nullptr) {
      tables_->clear();
    }
  }
  OwnedTables(const OwnedTables &) = delete;
  OwnedTables &operator=(const OwnedTables &) = delete;
  ~OwnedTables() { std::free(tables_); }

  CodeTables *get() const { return tables_; }

 private:
  CodeTables *tables_;
};

// From this many elements on the tables are worth their start.
constexpr int64_t kLeastForTables = 1 << 16;

// Whether blocks of a source have tables: where no weight, no square of one, and no sum of the squares of a block's even
// or of its odd elements is rounded more than once. INT4 is up to 8 and bfloat16 has eight bits; E2M1's squares under a
// power of two are never rounded.
static inline bool has_tables(const sparkfp4_scheme &scheme) {
  return (scheme.codes == SPARKFP4_INT4 && scheme.scales == SPARKFP4_SCALE_BF16) ||
         (scheme.codes == SPARKFP4_E2M1 && scheme.scales == SPARKFP4_SCALE_E8M0);
}

// kSlots: where a vector has room for 8 errors only, the one of INT4's -8 takes the place of the one of 0, which is 0.
template <sparkfp4_recipe kRecipe, typename Type, int kSlots>
__attribute__((noinline)) static void make_table(uint32_t key, float global_scale, BlockTable *table) {
  constexpr bool kInt4 = Type::kSource == Int4::kSource;
  constexpr uint32_t kMagnitudes = kInt4 ? 9 : 8;
  float source_scale = bits_as<float>(key & ~kKeyMagnitude);
  uint32_t largest = key & kKeyMagnitude;
  float w[kMagnitudes];
  for (uint32_t i = 0; i < kMagnitudes; i++) {
    w[i] = (kInt4 ? static_cast<float>(i) : e2m1_magnitude(i)) * source_scale;
  }

  float scale = block_scale<kRecipe, Type>(w[largest], 6.0f, global_scale);
  float d = dequant_factor<kRecipe>(scale, global_scale);
  for (uint32_t i = 0; i < kMagnitudes; i++) {
    float x = w[i] / d;
    uint32_t index = e2m1_index(x);
    // A quotient of zero has no sign.
    uint32_t negative = index + (x > 0 ? 8 : 0);
    if (!kInt4 || i < 8) {
      table->codes[kInt4 ? i + 8 : i] = static_cast<unsigned char>(index);
    }

    if (!kInt4 || i > 0) {
      table->codes[kInt4 ? 8 - i : i + 8] = static_cast<unsigned char>(negative);
    }

    // The sign does not matter to the square.
    float error = w[i] - e2m1_magnitude(index) * d;
    table->errors[i % kSlots] = error * error;
  }

  table->key = key | static_cast<uint32_t>(e4m3_byte(scale)) << 8;
}

}  // namespace sparkfp4
