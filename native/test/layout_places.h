// The place of each row, code and scale of a layout, one by one, as org.sparkfp4.formats gives it.
#pragma once

#include <cstdint>

#include "sparkfp4_layouts.h"

// The place of a member's row, as RowOrder has it.
inline int64_t position(const sparkfp4_arrangement &shape, int64_t member, int64_t row) {
  int64_t in_turn = row * shape.members + member;
  switch (shape.order) {
    case SPARKFP4_CONCATENATED:
      return member * shape.padded_rows + row;
    case SPARKFP4_INTERLEAVED_64:
      return (row / 64 * shape.members + member) * 64 + row % 64;
    case SPARKFP4_TRTLLM_GEN_32:
      return in_turn / 32 * 32 + in_turn % 4 * 8 + in_turn % 32 / 4;
    case SPARKFP4_TRTLLM_GEN_16:
      return in_turn / 16 * 16 + in_turn % 2 * 8 + in_turn % 16 / 2;
    default:
      return row;
  }
}

// The place of a code in half bytes, as CodeLayout has it; rows are those in memory.
inline int64_t nibble(int layout, int64_t row, int64_t column, int64_t rows, int64_t k) {
  int64_t tile_row = (row / 128 * (k / 64) + column / 64) * 128 + row % 128;
  switch (layout) {
    case SPARKFP4_CODES_BLACKWELL_MOE_N128_K64:
      return (tile_row * 2 + ((column % 64 / 32) ^ (row >> 2 & 1))) * 32 + column % 32;
    case SPARKFP4_CODES_BLACKWELL_N128_K64:
      return tile_row * 64 + column % 64;
    case SPARKFP4_CODES_MARLIN: {
      int64_t word = (column / 16 * (rows / 64) + row / 64) * 128 + 4 * (row % 8 * 4 + column % 8 / 2) + row % 64 / 16;
      return word * 8 + column % 2 * 4 + row % 16 / 8 * 2 + column % 16 / 8;
    }
    default:
      return row * k + column;
  }
}

// The place of a scale, as BlockScaleLayout has it; rows and columns are those in memory.
inline int64_t scale_place(int layout, int64_t row, int64_t column, int64_t rows, int64_t columns) {
  int64_t block = row % 64 / 8;
  switch (layout) {
    case SPARKFP4_SCALES_ATOM_128X4:
      return (row / 128 * (columns / 4) + column / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
    case SPARKFP4_SCALES_ATOM_8X4:
      return (row / 8 * (columns / 4) + column / 4) * 32 + row % 8 * 4 + column % 4;
    case SPARKFP4_SCALES_BLACKWELL_N128_K64:
      return (row / 128 * (columns / 4) + column / 4) * 512 + row % 128 * 4 + column % 4;
    case SPARKFP4_SCALES_MARLIN_E4M3:
    case SPARKFP4_SCALES_MARLIN_S0E5M3:
      return column * rows + row / 64 * 64 + row % 8 * 8 + ((block & 4) | (block & 1) << 1 | (block >> 1 & 1));
    default:
      return row * columns + column;
  }
}

// The byte of a scale for vLLM's Marlin, as MarlinScale has it: from the value's bits, not from the kernel's sums.
inline unsigned char marlin_byte(unsigned char scale, int exponent) {
  int field = scale >> 3;
  double value = field == 0 ? (scale & 7) / 512.0 : (8 + (scale & 7)) / 8.0 * (1 << field) / 128.0;
  double scaled = value * (1 << exponent);
  if (scale > 0x7e || scaled > 448) {
    return 0xff;
  }

  unsigned char byte = 0;
  // The byte whose value is scaled * 2^7: 5 bits of exponent biased by 15, 3 of mantissa.
  auto value_of = [](int b) { return b < 8 ? b / 131072.0 : (8 + b % 8) / 8.0 * (1 << (b / 8)) / 32768.0; };
  while (byte < 0xf8 && value_of(byte) != scaled * 128) {
    byte++;
  }

  return byte;
}
