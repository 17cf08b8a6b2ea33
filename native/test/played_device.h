// What tests without a device play of one, for the arithmetic of kernels on a host.
#pragma once

#include <cstdint>

#include "../cuda/permute.cuh"

namespace sparkfp4::cuda {

// As prmt.b32 does.
inline uint32_t permute(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t number = selector >> (4 * i) & 0xf;
    uint32_t byte = bytes >> (8 * (number & 7)) & 0xff;
    result |= (number < 8 ? byte : byte < 128 ? 0u : 0xffu) << (8 * i);
  }

  return result;
}

}  // namespace sparkfp4::cuda

// As the device's intrinsic does: without the signs.
inline uint32_t __byte_perm(uint32_t a, uint32_t b, uint32_t selector) {
  return sparkfp4::cuda::permute(a, b, selector & 0x7777u);
}

#define __device__
#define __forceinline__ inline
