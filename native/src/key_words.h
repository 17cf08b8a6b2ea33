// Rows of bfloat16 that are encoded as they are: all is done on their bits, two elements a lane.
//
// A scale is a power of two, and so a midpoint of E2M1 is one of bfloat16, whose order is that of its bits: counted
// from an eighth of the scale, they are 128, 320, 416, 480, 544, 608 and 672, of which the second, fourth and sixth
// are the next code's.
#pragma once

#include "key_vectors.h"

namespace sparkfp4 {
namespace {

typedef int16_t Shorts __attribute__((vector_size(4 * kWidth)));

struct WordBlock {
  Shorts x[kParts];
};

constexpr uint32_t kLeastEighth = 3;  // the least scale byte whose eighth is no subnormal

SPARKFP4_KEY_OP WordBlock load_words(const unsigned char *source) {
  WordBlock block;
  SPARKFP4_EACH_PART { block.x[part] = load_vector<Shorts>(source + 4 * kWidth * part); }
  return block;
}

// Binary32, rounded to odd: what is between two values becomes the one whose last bit is set, and so stays on the same
// side of all that has a bit less, such as midpoints and what scales begin at.
SPARKFP4_KEY_OP Word to_odd(Float x) {
  Word bits = as<Word>(x);
  return bits | (((bits & 0xffff) + 0xffff) & 0x10000);
}

SPARKFP4_KEY_OP WordBlock to_words(const Block &block) {
  WordBlock words;
  SPARKFP4_EACH_PART {
    words.x[part] = as<Shorts>(to_odd(block.even[part]) >> 16 | (to_odd(block.odd[part]) & 0xffff0000));
  }

  return words;
}

SPARKFP4_KEY_OP Shorts word_magnitudes(Shorts x) { return x & 0x7fff; }

// The largest magnitude of each of the block's lanes, as binary32 bits.
SPARKFP4_KEY_OP Word largest_of_lanes(const WordBlock &block) {
  Shorts largest = word_magnitudes(block.x[0]);
  for (int part = 1; part < kParts; part++) {
    Shorts other = word_magnitudes(block.x[part]);
    largest = largest > other ? largest : other;
  }

  Word pairs = as<Word>(largest);
  return Max::of(pairs << 16, pairs & 0xffff0000);
}

// The code of the magnitude that is so far above an eighth of the scale; odd is its seventh bit.
SPARKFP4_KEY_OP Shorts word_codes(Shorts above, Shorts odd) {
#ifdef __AVX512BW__
  // By quarters of octaves. Midpoints begin the third and the fourth, whose magnitudes are odd, and end the first.
  const Shorts codes = {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 0};
  return as<Shorts>(_mm512_permutexvar_epi16(as<__m512i>((above + odd - 1) >> 5), as<__m512i>(codes)));
#else
  (void)odd;
  return -((above > 128) + (above >= 320) + (above > 416) + (above >= 480) + (above > 544) + (above >= 608) +
           (above > 672));
#endif
}

// Encodes a block under a scale whose eighth, as bfloat16 bits, is in both words of all lanes.
SPARKFP4_KEY_OP void encode_words(const WordBlock &block, Word eighth, unsigned char *packed) {
  Shorts least = as<Shorts>(eighth);
  SPARKFP4_EACH_PART {
    Shorts x = block.x[part];
    Shorts magnitude = word_magnitudes(x);
    Shorts above = (magnitude > least ? magnitude : least) - least;
    Shorts code = word_codes(above, magnitude >> 6 & 1) | (x >> 12 & 8);
    // A byte of a lane's two codes.
    Word pairs = as<Word>(code);
    store_vector(packed + kWidth * part, to_bytes((pairs | pairs >> 12) & 0xff));
  }
}

}  // namespace
}  // namespace sparkfp4
