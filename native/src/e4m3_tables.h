// What the blocks of an E4M3 source have in common that share a scale: all that an encode to the nearest needs to know
// of a block is told by the magnitude of its largest code. So there is a table a scale, by that magnitude, which the
// vector tiers fill as they meet new ones (shared_strip.h).
#pragma once

#include <cstdlib>
#include <cstring>

#include "segments.h"

namespace sparkfp4 {

// Of blocks whose largest code has one magnitude. Thresholds are magnitudes doubled, as a code is without its sign in
// the high bits of its byte; from the lowest byte on:
//   the first magnitude whose code is 1, and 2;
//   the last magnitude whose code is 2, and 3, less seven: codes 5 and 7 begin 8 and 16 magnitudes above 3, code 6
//   8 above 4, an octave being 8 magnitudes.
struct E4m3Entry {
  // Beside the scale: of blocks whose codes can be told by the entry, or cannot. Without, it has not been filled yet.
  static constexpr uint32_t kKnown = 0x100;
  static constexpr uint32_t kUnfit = 0x200;

  uint32_t thresholds;
  uint32_t d;      // a float's bits
  uint32_t scale;  // E4M3, and kKnown or kUnfit
  float source_scale;  // times 2^120: of codes that are shifted into binary32's exponent
};

constexpr int kMagnitudes = 128;

struct alignas(64) E4m3Table {
  static constexpr uint32_t kFilled = 32;  // entries that are filled at once

  E4m3Entry entries[kMagnitudes];
  // Beside the entries, so that the size is no multiple of 128: what is used of tables must not meet in the cache.
  uint32_t filled;  // a bit for kFilled entries
  float source_scale;
};

// The tables of the segments of a call, as far as a chunk of blocks needs them.
class E4m3Tables {
 public:
  // Blocks of one scale from which on its table is worth its while.
  static constexpr int64_t kLeastBlocks = 256;
  static constexpr int64_t kMostBytes = 4 << 20;

  E4m3Tables() = default;
  E4m3Tables(const E4m3Tables &) = delete;
  E4m3Tables &operator=(const E4m3Tables &) = delete;
  ~E4m3Tables() { std::free(tables_); }

  // Of a segment whose chunks have up to chunk_blocks blocks: whether there are tables for it.
  bool begin(const sparkfp4_scheme &scheme, int64_t rows, int64_t cols, int64_t chunk_blocks) {
    row_blocks_ = cols / kBlock;
    block_rows_ = scheme.block_rows == 0 || scheme.block_rows > rows ? rows : scheme.block_rows;
    int64_t scale_blocks = scheme.block_cols == 0 ? row_blocks_ : scheme.block_cols / kBlock;
    per_scale_ = scale_blocks < row_blocks_ ? scale_blocks : row_blocks_;
    // Neither product overflows: each is of numbers whose product is one of blocks there are.
    if (scheme.codes != SPARKFP4_E4M3 || block_rows_ * per_scale_ < kLeastBlocks) {
      return false;
    }

    in_row_ = (row_blocks_ + per_scale_ - 1) / per_scale_;
    kept_ = chunk_blocks / (block_rows_ * row_blocks_) + 2;
    if (in_row_ > kMostBytes / static_cast<int64_t>(sizeof(E4m3Table)) / kept_) {
      return false;
    }

    return reserve(in_row_ * kept_);
  }

  // The offsets of the blocks' tables from get(), for a chunk of the segment: chunks come in order. scale(row, index)
  // gives the scales of a row of them.
  template <typename Scale>
  void spread(int64_t first, int64_t blocks, Scale scale, uint32_t *offsets) {
    int64_t row = first / row_blocks_;
    int64_t in_row = first % row_blocks_;
    while (blocks > 0) {
      int64_t scale_row = row / block_rows_;
      if (scale_row != scale_row_) {
        scale_row_ = scale_row;
        begin_row(scale_row, scale);
      }

      int64_t count = row_blocks_ - in_row < blocks ? row_blocks_ - in_row : blocks;
      spread_row(static_cast<uint32_t>(scale_row % kept_ * in_row_), in_row, count, offsets);
      offsets += count;
      blocks -= count;
      in_row = 0;
      row++;
    }
  }

  unsigned char *get() const { return reinterpret_cast<unsigned char *>(tables_); }

 private:
  bool reserve(int64_t count) {
    if (count > count_) {
      std::free(tables_);
      tables_ = static_cast<E4m3Table *>(std::aligned_alloc(alignof(E4m3Table), count * sizeof(E4m3Table)));
      count_ = tables_ == nullptr ? 0 : count;
      if (tables_ != nullptr) {
        std::memset(static_cast<void *>(tables_), 0, count * sizeof(E4m3Table));
      }
    }

    scale_row_ = -1;
    return tables_ != nullptr;
  }

  template <typename Scale>
  void begin_row(int64_t scale_row, Scale scale) {
    E4m3Table *first = tables_ + scale_row % kept_ * in_row_;
    for (E4m3Table *table = first; table < first + in_row_; table++) {
      for (int i = 0; table->filled >> i != 0; i++) {
        if (table->filled >> i & 1) {
          for (uint32_t j = i * E4m3Table::kFilled; j < (i + 1) * E4m3Table::kFilled; j++) {
            table->entries[j].scale = 0;
          }
        }
      }

      table->filled = 0;
      table->source_scale = scale(scale_row, table - first);
    }
  }

  void spread_row(uint32_t first_table, int64_t block, int64_t blocks, uint32_t *offsets) const {
    auto size = static_cast<uint32_t>(sizeof(E4m3Table));
    uint32_t offset = (first_table + static_cast<uint32_t>(block / per_scale_)) * size;
    int64_t i = 0;
    if (per_scale_ == 8 && block % 8 == 0) {
      // Blocks of 128.
      for (; i + 8 <= blocks; i += 8, offset += size) {
        repeat<8>(offset, offsets + i);
      }
    }

    for (int64_t end = i + per_scale_ - (block + i) % per_scale_; i < blocks; end += per_scale_, offset += size) {
      int64_t last = end < blocks ? end : blocks;
      for (; i + kUnroll <= last; i += kUnroll) {
        repeat<kUnroll>(offset, offsets + i);
      }

      for (; i < last; i++) {
        offsets[i] = offset;
      }
    }
  }

  static constexpr int kUnroll = 16;

  template <int kTimes>
  static void repeat(uint32_t offset, uint32_t *to) {
    for (int i = 0; i < kTimes; i++) {
      to[i] = offset;
    }
  }

  E4m3Table *tables_ = nullptr;
  int64_t count_ = 0;
  int64_t row_blocks_ = 0;
  int64_t block_rows_ = 0;
  int64_t per_scale_ = 0;
  int64_t in_row_ = 0;  // scales in a row of blocks
  int64_t kept_ = 0;    // rows of scales
  int64_t scale_row_ = -1;
};

}  // namespace sparkfp4
