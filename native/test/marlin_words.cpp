// The word-wise arithmetic of CUDA's Marlin scales beside the tables, for every byte under every factor, each in every
// place of a word beside others. Needs no device: the byte permutation is played.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "played_device.h"
#include "../cuda/marlin_words.cuh"

using namespace sparkfp4;
using namespace sparkfp4::cuda;

namespace {

void require_same(uint32_t word, uint32_t actual, const unsigned char *table, int exponent, const char *way) {
  for (int i = 0; i < 4; i++) {
    uint32_t byte = word >> (8 * i) & 0xff;
    uint32_t result = actual >> (8 * i) & 0xff;
    if (result != table[byte]) {
      std::fprintf(stderr, "%s, factor 2^%d: byte %d of %08x: %02x, not %02x\n", way, exponent, i, word, result,
                   table[byte]);
      std::exit(1);
    }
  }
}

}  // namespace

int main() {
  for (int exponent = 0; exponent <= 17; exponent++) {
    const MarlinScale scale(exponent);
    const MarlinWords words = marlin_words(scale);
    // Two bytes have all values, the other two the same or some.
    for (uint32_t pair = 0; pair < 0x10000; pair++) {
      uint32_t others = pair % 3 == 0 ? pair : pair * 0x9e3779b1u >> 16;
      const uint32_t both[] = {pair | others << 16, pair << 16 | others};
      uint32_t encoded[] = {both[0], both[1]};
      uint32_t decoded[] = {both[0], both[1]};
      encode_words<2>(words, encoded);
      decode_words<2>(words, decoded);
      for (int i = 0; i < 2; i++) {
        uint32_t alone = both[i];
        encode_words<1>(words, &alone);
        require_same(both[i], encoded[i], scale.encoded(), exponent, "encoded");
        require_same(both[i], alone, scale.encoded(), exponent, "encoded alone");
        alone = both[i];
        decode_words<1>(words, &alone);
        require_same(both[i], decoded[i], scale.decoded(), exponent, "decoded");
        require_same(both[i], alone, scale.decoded(), exponent, "decoded alone");
      }
    }
  }

  std::puts("the words are those of the tables");
  return 0;
}
