// Bytes of two words in any order.
#pragma once

#include <cstdint>

namespace sparkfp4::cuda {

// Byte i is that of a, 0 to 3, or b, 4 to 7, which the lower three bits of half byte i of the selector number; the
// fourth bit asks for the sign of that byte in all its bits. __byte_perm() takes the fourth bit away first, which the
// sign is lost by and which is an instruction wherever the selector is no constant.
#ifdef __CUDACC__
__device__ __forceinline__ uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
  return bytes;
}
#else
uint32_t permute(uint32_t a, uint32_t b, uint32_t selector);  // as tests play it
#endif

}  // namespace sparkfp4::cuda
