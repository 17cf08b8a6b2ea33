// Words of 16 bytes on their way into shared memory, which a thread does not wait for until it says so.
#pragma once

#include <cstdint>

namespace sparkfp4::cuda {

constexpr int kWarp = 32;

__device__ __forceinline__ uint32_t shared_address(const void *address) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(address));
}

__device__ __forceinline__ void fetch_word(uint32_t target, const unsigned char *source) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(target), "l"(source) : "memory");
}

// Ends a fetch of so many words, of none too.
__device__ __forceinline__ void end_fetch() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits for all fetches but the newest so many, those of the warp's other threads too.
template <int kNewest>
__device__ __forceinline__ void wait_for_fetch() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
  __syncwarp();
}

}  // namespace sparkfp4::cuda
