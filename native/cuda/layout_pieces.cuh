// Pieces of 16 bytes in memory, at any address: what the kernels of layouts read and write.
#pragma once

#include <cstdint>

namespace sparkfp4::cuda {
namespace {

__host__ __device__ __forceinline__ bool is_aligned(const void *address, int to) {
  return (reinterpret_cast<uintptr_t>(address) & (to - 1)) == 0;
}

// 16 bytes at any address, of which so many are there; the rest is 0.
__device__ __forceinline__ uint4 read16(const unsigned char *from, int64_t bytes) {
  if (bytes >= 16 && is_aligned(from, 16)) {
    return __ldg(reinterpret_cast<const uint4 *>(from));
  }

  if (bytes >= 16 && is_aligned(from, 4)) {
    const uint32_t *words = reinterpret_cast<const uint32_t *>(from);
    return {words[0], words[1], words[2], words[3]};
  }

  uint32_t words[4] = {};
#pragma unroll
  for (int i = 0; i < 16; i++) {
    words[i / 4] |= i < bytes ? static_cast<uint32_t>(from[i]) << (8 * (i % 4)) : 0;
  }

  return {words[0], words[1], words[2], words[3]};
}

__device__ __forceinline__ void write16(unsigned char *to, uint4 piece, int64_t bytes) {
  if (bytes >= 16 && is_aligned(to, 16)) {
    *reinterpret_cast<uint4 *>(to) = piece;
    return;
  }

  uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
  if (bytes >= 16 && is_aligned(to, 4)) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      reinterpret_cast<uint32_t *>(to)[i] = words[i];
    }

    return;
  }

#pragma unroll
  for (int i = 0; i < 16; i++) {
    if (i < bytes) {
      to[i] = static_cast<unsigned char>(words[i / 4] >> (8 * (i % 4)));
    }
  }
}

// A thread's pieces. at(i, &there) is where piece i is, or null, and how many of its bytes are there: all, at their
// alignment, where is_aligned says so.
template <int kCount, typename At>
__device__ __forceinline__ void read_pieces(At at, bool is_aligned, uint4 *pieces) {
  int64_t there;
  if (is_aligned) {
#pragma unroll
    for (int i = 0; i < kCount; i++) {
      const unsigned char *from = at(i, &there);
      pieces[i] = from == nullptr ? uint4{} : __ldg(reinterpret_cast<const uint4 *>(from));
    }

    return;
  }

#pragma unroll
  for (int i = 0; i < kCount; i++) {
    const unsigned char *from = at(i, &there);
    pieces[i] = from == nullptr ? uint4{} : read16(from, there);
  }
}

template <int kCount, typename At>
__device__ __forceinline__ void write_pieces(At at, bool is_aligned, const uint4 *pieces) {
  int64_t there;
#pragma unroll
  for (int i = 0; i < kCount; i++) {
    unsigned char *to = at(i, &there);
    if (to != nullptr && is_aligned) {
      *reinterpret_cast<uint4 *>(to) = pieces[i];
    } else if (to != nullptr) {
      write16(to, pieces[i], there);
    }
  }
}

}  // namespace
}  // namespace sparkfp4::cuda
