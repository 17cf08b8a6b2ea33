// Marlin's codes by tier.
#pragma once

#include <cstdint>

namespace sparkfp4 {

// Eight tiles of 64 rows by 16 columns of codes: 64 bytes of each row, from byte `at` on, and tiles of 512.
struct MarlinKernel {
  void (*arrange)(const unsigned char *const *rows, int64_t at, unsigned char *const *tiles);
  void (*restore)(const unsigned char *const *tiles, unsigned char *const *rows, int64_t at);
};

extern const MarlinKernel kMarlinScalar;
#ifdef SPARKFP4_X86
extern const MarlinKernel kMarlinAvx2;
extern const MarlinKernel kMarlinAvx512;
#endif

}  // namespace sparkfp4
