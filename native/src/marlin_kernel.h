// Marlin's codes by tier.
#pragma once

namespace sparkfp4 {

// Eight tiles of 64 rows by 16 columns of codes: rows of 64 bytes, tiles of 512.
struct MarlinKernel {
  void (*arrange)(const unsigned char (*rows)[64], unsigned char *const *tiles);
  void (*restore)(const unsigned char *const *tiles, unsigned char (*rows)[64]);
};

extern const MarlinKernel kMarlinScalar;
#ifdef SPARKFP4_X86
extern const MarlinKernel kMarlinAvx2;
extern const MarlinKernel kMarlinAvx512;
#endif

}  // namespace sparkfp4
