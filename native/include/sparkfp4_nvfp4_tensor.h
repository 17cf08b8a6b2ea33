// A view of an NVFP4 tensor as TensorRT Edge-LLM's kernels see it, in the words of its documentation; for the host and
// for CUDA. C++17; org.sparkfp4.formats.NVFP4Tensor is the same in Java.
//
// A tile is 64 consecutive E2M1 codes of a row: 32 bytes, two int4 of four 32-bit lanes, 8 codes a lane, the first in
// the lowest bits. Three tile indices address it; strides are in int4, 16 bytes. Beside each tile is a word of four
// E4M3 scales: those of weights in atoms of 128 rows by 4 words, those of activations one after another.
//
// On the host pointers may have any alignment; on a device quantized_data is aligned to 16, the others to 4.
#ifndef SPARKFP4_NVFP4_TENSOR_H
#define SPARKFP4_NVFP4_TENSOR_H

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define SPARKFP4_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SPARKFP4_HOST_DEVICE inline
#endif

namespace sparkfp4 {

constexpr int kNvfp4ElemsPerTile = 64;
constexpr int64_t kNvfp4Int4PerTilePayload = 2;

// Tile indices: x the slowest, z the fastest.
struct Dim3 {
  int32_t x;
  int32_t y;
  int32_t z;

  SPARKFP4_HOST_DEVICE int32_t at(int index) const { return index == 0 ? x : index == 1 ? y : z; }
};

// Four lanes of 8 codes.
struct alignas(16) Uint4 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
  uint32_t w;
};

// A number at any address on the host, at an aligned one on a device.
template <typename T>
SPARKFP4_HOST_DEVICE T load_from(const void *address) {
#ifdef __CUDA_ARCH__
  return *static_cast<const T *>(address);
#else
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
#endif
}

// The word of an atom where the scales of row m mod 128 are.
SPARKFP4_HOST_DEVICE int64_t nvfp4AtomWord(int64_t m) { return m % 32 * 4 + m % 128 / 32; }

// Exchanges bytes 1 and 2: from memory's order of scales to Marlin's, {s0, s2, s1, s3}, and back.
SPARKFP4_HOST_DEVICE uint32_t nvfp4ExchangedScales(uint32_t word) {
  return (word & 0xff0000ffu) | ((word << 8) & 0x00ff0000u) | ((word >> 8) & 0x0000ff00u);
}

// global_scale[idx], or 1 where there are none.
SPARKFP4_HOST_DEVICE float nvfp4TensorScaleAt(const float *global_scale, int64_t idx) {
  return global_scale == nullptr ? 1.0f : load_from<float>(global_scale + idx);
}

struct NVFP4Tensor {
  const unsigned char *quantized_data;
  const unsigned char *block_scale;
  const float *global_scale;  // one an expert, or null for 1
  int64_t strides[3];         // int4 from a tile to the next
  int64_t scaleNumKTiles;     // ceil(K / 64)
  int64_t scaleExpertStride;  // words from an expert to the next
  int8_t scaleMDimIdx;        // the component that is the row: 1 of weights, 0 of activations
  int8_t scaleKDimIdx;        // the component that is the tile of the row: 2, 1

  // Where a tile begins, in int4.
  SPARKFP4_HOST_DEVICE int64_t tileOffsetInt4(Dim3 c) const {
    return c.x * strides[0] + c.y * strides[1] + c.z * strides[2];
  }

  // The word of a weight tile's scales.
  SPARKFP4_HOST_DEVICE int64_t tileScaleIndex(Dim3 c) const {
    int64_t m_row = c.at(scaleMDimIdx);
    // A tile of the row is 4 columns of scales.
    int64_t k_tile = c.at(scaleKDimIdx);
    int64_t expert = c.at(3 - scaleMDimIdx - scaleKDimIdx);
    return expert * scaleExpertStride + m_row / 128 * scaleNumKTiles * 128 + k_tile * 128 + nvfp4AtomWord(m_row);
  }

  // The scales of a weight tile, {s0, s2, s1, s3} from the lowest byte on; memory has {s0, s1, s2, s3}.
  SPARKFP4_HOST_DEVICE uint32_t readBlockScaleWord(Dim3 c) const {
    return nvfp4ExchangedScales(load_from<uint32_t>(block_scale + 4 * tileScaleIndex(c)));
  }

  // The scales of an activation tile, which memory has as {s0, s2, s1, s3}.
  SPARKFP4_HOST_DEVICE uint32_t readBlockScaleWordLinear(Dim3 c) const {
    return load_from<uint32_t>(block_scale + 4 * (tileOffsetInt4(c) / kNvfp4Int4PerTilePayload));
  }

  // The four lanes of int4 `chunk`, 0 or 1, of a tile.
  SPARKFP4_HOST_DEVICE void loadTileUint4(Dim3 tile, int chunk, Uint4 &out) const {
    out = load_from<Uint4>(quantized_data + 16 * (tileOffsetInt4(tile) + chunk));
  }

  // Lane 0 to 3 of that int4.
  SPARKFP4_HOST_DEVICE uint32_t loadTileUint32Lane(Dim3 tile, int chunk, int lane) const {
    return load_from<uint32_t>(quantized_data + 16 * (tileOffsetInt4(tile) + chunk) + 4 * lane);
  }
};

// Stacked weights [experts, rows, k / 2] with scales [experts, ceil(rows / 128), k / 64, 32, 4, 4]: x is the expert, y
// the row, z the tile of the row.
inline NVFP4Tensor nvfp4Weights(int64_t rows, int64_t k, const void *codes, const void *scales, const float *global) {
  int64_t k_tiles = k / kNvfp4ElemsPerTile;
  return {static_cast<const unsigned char *>(codes),
          static_cast<const unsigned char *>(scales),
          global,
          {rows * k_tiles * kNvfp4Int4PerTilePayload, k_tiles * kNvfp4Int4PerTilePayload, kNvfp4Int4PerTilePayload},
          k_tiles,
          (rows + 127) / 128 * k_tiles * 128,
          1,
          2};
}

// Activations [tokens, k / 2] with scale words [tokens, k / 64]: x is the token, y the tile of its row, z is 0.
inline NVFP4Tensor nvfp4Activations(int64_t k, const void *codes, const void *words, const float *global) {
  int64_t k_tiles = k / kNvfp4ElemsPerTile;
  return {static_cast<const unsigned char *>(codes),
          static_cast<const unsigned char *>(words),
          global,
          {k_tiles * kNvfp4Int4PerTilePayload, kNvfp4Int4PerTilePayload, 0},
          k_tiles,
          0,
          0,
          1};
}

}  // namespace sparkfp4

#endif
