// Sources of few codes: what becomes of a block of INT4 or E2M1 depends on its source scale, on the magnitude of its
// largest code and on nothing else but the call's global scale. A tensor has some hundreds of such pairs, and millions
// of blocks: each pair's outcome is found once a call, by divisions as the definition has them, and kept.
#pragma once

#include <cstdlib>

#include "arithmetic.h"

namespace sparkfp4 {

// One cache line: what a vector reads of it beyond the errors is never chosen.
struct alignas(64) BlockTable {
  // By the magnitude of a code: the square of w - e2m1(code) * d. Where a vector has room for 8 of them, INT4's 8 has
  // the place of 0, which has no error.
  float errors[9];
  // E2M1, by the source's code.
  unsigned char codes[16];
  uint32_t key;
};
static_assert(sizeof(BlockTable) == 64, "one cache line");

// A key is the source's scale, bfloat16 or a power of two as binary32, the largest magnitude, and, once there is a
// table, the block's scale as E4M3. No block has the key of all ones.
constexpr uint32_t kKeyMagnitude = 0xf;
constexpr uint32_t kKeyByte = 0xff00;

// A table's place is its scale's, eight times nine bits of it, and the largest magnitude: of bfloat16 the mantissa and
// two bits of the exponent, so that four octaves next to each other do not meet. Blocks of -8 have the place of the
// next scale's blocks of zeros.
template <typename Type>
constexpr int kPlaceShift = Type::kSource == Int4::kSource ? 13 : 20;
constexpr uint32_t kScaleOfPlace = 0x1ff << 3;
constexpr int kPlaces = kScaleOfPlace + 8 + 1;

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

// Whether blocks of a source have tables: where no weight and no square of one is rounded, and no sum of the squares of
// a block's even or of its odd elements more than once. INT4 is up to 8 and bfloat16 has eight bits; E2M1's squares
// under a power of two are never rounded.
static inline bool has_tables(const sparkfp4_scheme &scheme) {
  return (scheme.codes == SPARKFP4_INT4 && scheme.scales == SPARKFP4_SCALE_BF16) ||
         (scheme.codes == SPARKFP4_E2M1 && scheme.scales == SPARKFP4_SCALE_E8M0);
}

// Whether a call has so many elements that it saves more by tables than they take to be made: of INT4 up to two
// thousand, of MXFP4 a hundred.
static inline bool are_tables_worth(const sparkfp4_scheme &scheme, int64_t elements, bool sums) {
  return elements >= (scheme.codes == SPARKFP4_E2M1 ? 1 << 17 : sums ? 1 << 19 : 1 << 20);
}

}  // namespace sparkfp4
