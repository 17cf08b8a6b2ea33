// Layouts: a block of threads takes a tile of rows by 128 bytes through shared memory, in pieces of 16 bytes on both
// sides, so that memory is read and written in whole lines. A layout says where its pieces are and what is in them.
#include "layouts.h"

namespace sparkfp4::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 128;               // bytes of a row in a tile
constexpr int kRowPieces = kWidth / 16;
constexpr int kChunksOfBlock = 4;         // tiles of the same rows that a block of threads takes in turn
constexpr int64_t kMaxGrid = 65535;

__device__ __forceinline__ bool is_aligned(const void *address, int to) {
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

// A tile in shared memory; a pitch of whole words, or of whole pieces.
template <int kPitch>
struct Tile {
  unsigned char *bytes;
  const unsigned char *table;  // of scales, where a layout has one

  __device__ uint4 row_piece(int row, int piece) const {
    const unsigned char *from = bytes + row * kPitch + 16 * piece;
    if (kPitch % 16 == 0) {
      return *reinterpret_cast<const uint4 *>(from);
    }

    const uint32_t *words = reinterpret_cast<const uint32_t *>(from);
    return {words[0], words[1], words[2], words[3]};
  }

  __device__ void put_row_piece(int row, int piece, uint4 value) const {
    unsigned char *to = bytes + row * kPitch + 16 * piece;
    if (kPitch % 16 == 0) {
      *reinterpret_cast<uint4 *>(to) = value;
      return;
    }

    uint32_t *words = reinterpret_cast<uint32_t *>(to);
    words[0] = value.x;
    words[1] = value.y;
    words[2] = value.z;
    words[3] = value.w;
  }

  __device__ uint32_t *word(int row, int index) const {
    return reinterpret_cast<uint32_t *>(bytes + row * kPitch + 4 * index);
  }
};

// Where a tile is: its first row, and the first byte of its rows.
struct Place {
  int64_t row;
  int64_t at;
};

// A layout has kRows and kPitch of a tile, and for each of its pieces on the arranged side, as many as on the other:
//   offset(shape, place, piece)   where it is, or -1 where the matrix has none
//   get(tile, piece), put(tile, piece, value)
//   prepare(shared)                 fills the tile's table
struct WithoutTable {
  __device__ void prepare(unsigned char *) const {}
};

template <bool kExchanges>
struct BlackwellCodes : WithoutTable {
  static constexpr int kRows = 128;
  static constexpr int kPitch = kWidth + 16;

  // 2 a row and tile of 64 columns; rows follow each other.
  static __device__ int row(int piece) { return piece / 2 % kRows; }
  static __device__ int row_piece(int piece) {
    int half = kExchanges ? piece ^ row(piece) >> 2 : piece;
    return piece / (2 * kRows) * 2 + (half & 1);
  }

  static __device__ int64_t offset(const RowShape &shape, Place place, int piece) {
    int64_t k_tile = place.at / 32 + piece / (2 * kRows);
    int64_t k_tiles = shape.padded_row_bytes / 32;
    return k_tile < k_tiles ? ((place.row / kRows * k_tiles + k_tile) * 2 * kRows + piece % (2 * kRows)) * 16 : -1;
  }

  __device__ uint4 get(Tile<kPitch> tile, int piece) const { return tile.row_piece(row(piece), row_piece(piece)); }
  __device__ void put(Tile<kPitch> tile, int piece, uint4 value) const {
    tile.put_row_piece(row(piece), row_piece(piece), value);
  }
};

struct MarlinCodes : WithoutTable {
  static constexpr int kRows = 64;
  static constexpr int kPitch = kWidth + 16;

  // 32 a tile of 16 columns: 4 r + q.
  static __device__ int64_t offset(const RowShape &shape, Place place, int piece) {
    int64_t k_tile = place.at / 8 + piece / 32;
    bool is_there = k_tile < shape.padded_row_bytes / 8;
    return is_there ? ((k_tile * (shape.matrix_rows / kRows) + place.row / kRows) * 32 + piece % 32) * 16 : -1;
  }

  // Word j has bytes q and q + 4 of rows 16 j + r and 8 below: the low halves, then the high ones.
  __device__ uint4 get(Tile<kPitch> tile, int piece) const {
    int r = piece / 4 % 8;
    int q = piece % 4;
    uint32_t selector = q | (q + 4) << 4;
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const uint32_t *upper = tile.word(16 * j + r, piece / 32 * 2);
      const uint32_t *lower = tile.word(16 * j + r + 8, piece / 32 * 2);
      uint32_t bytes = __byte_perm(__byte_perm(upper[0], upper[1], selector),
                                   __byte_perm(lower[0], lower[1], selector), 0x5410);
      uint32_t low = bytes & 0x0f0f0f0f;
      uint32_t high = bytes >> 4 & 0x0f0f0f0f;
      words[j] = __byte_perm(low | low >> 4, high | high >> 4, 0x6420);
    }

    return {words[0], words[1], words[2], words[3]};
  }

  __device__ void put(Tile<kPitch> tile, int piece, uint4 value) const {
    int r = piece / 4 % 8;
    int q = piece % 4;
    uint32_t words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned char *upper = tile.bytes + (16 * j + r) * kPitch + piece / 32 * 8 + q;
      unsigned char *lower = upper + 8 * kPitch;
      uint32_t even = words[j] & 0x0f0f;
      even |= words[j] >> 12 & 0xf0f0;
      uint32_t odd = words[j] >> 4 & 0x0f0f;
      odd |= words[j] >> 16 & 0xf0f0;
      upper[0] = static_cast<unsigned char>(even);
      upper[4] = static_cast<unsigned char>(odd);
      lower[0] = static_cast<unsigned char>(even >> 8);
      lower[4] = static_cast<unsigned char>(odd >> 8);
    }
  }
};

// Words of four scales in tiles of kTileRows by one; in atoms the words of rows 32 apart are neighbours.
template <int kTileRows, bool kIsAtom>
struct ScaleWords : WithoutTable {
  static constexpr int kRows = 128;
  static constexpr int kPitch = kWidth + 4;
  static constexpr int kWords = kWidth / 4;
  static constexpr int kPiecesOfWord = kTileRows / 4;

  static __device__ int word(int piece) { return piece / kPiecesOfWord % kWords; }
  // The row of word i of a piece.
  static __device__ int row(int piece, int i) {
    int in_tile = piece % kPiecesOfWord;
    return kIsAtom ? in_tile + 32 * i : piece / (kPiecesOfWord * kWords) * kTileRows + 4 * in_tile + i;
  }

  static __device__ int64_t offset(const RowShape &shape, Place place, int piece) {
    int64_t row_tile = place.row / kTileRows + piece / (kPiecesOfWord * kWords);
    int64_t words = shape.padded_row_bytes / 4;
    int64_t index = place.at / 4 + word(piece);
    bool is_there = index < words && row_tile < shape.matrix_rows / kTileRows;
    return is_there ? ((row_tile * words + index) * kPiecesOfWord + piece % kPiecesOfWord) * 16 : -1;
  }

  __device__ uint4 get(Tile<kPitch> tile, int piece) const {
    int index = word(piece);
    return {*tile.word(row(piece, 0), index), *tile.word(row(piece, 1), index), *tile.word(row(piece, 2), index),
            *tile.word(row(piece, 3), index)};
  }

  __device__ void put(Tile<kPitch> tile, int piece, uint4 value) const {
    int index = word(piece);
    *tile.word(row(piece, 0), index) = value.x;
    *tile.word(row(piece, 1), index) = value.y;
    *tile.word(row(piece, 2), index) = value.z;
    *tile.word(row(piece, 3), index) = value.w;
  }
};

struct SameScale {
  __device__ void prepare(unsigned char *) const {}
  static __device__ uint32_t translated(const unsigned char *, uint32_t scale) { return scale; }
};

struct TableScale {
  ScaleTable table;

  __device__ void prepare(unsigned char *shared) const {
    for (int i = threadIdx.x; i < 256; i += kThreads) {
      shared[i] = table.of[i];
    }
  }
  static __device__ uint32_t translated(const unsigned char *shared, uint32_t scale) { return shared[scale]; }
};

// Scales in Marlin's order: a column of 64 rows is 4 pieces.
template <typename Scale>
struct MarlinScales {
  static constexpr int kRows = 128;
  static constexpr int kPitch = kWidth + 4;

  Scale scale;

  __device__ void prepare(unsigned char *shared) const { scale.prepare(shared); }

  static __device__ int row(int piece, int i) {
    int slot = piece % 4 * 16 + i;
    int block = slot % 8;
    return piece / 4 % 2 * 64 + ((block & 4) | (block & 1) << 1 | (block >> 1 & 1)) * 8 + slot / 8;
  }

  static __device__ int64_t offset(const RowShape &shape, Place place, int piece) {
    int64_t column = place.at + piece / 8;
    int64_t row = place.row + piece % 8 * 16;
    return column < shape.padded_row_bytes && row < shape.matrix_rows ? column * shape.matrix_rows + row : -1;
  }

  __device__ uint4 get(Tile<kPitch> tile, int piece) const {
    uint32_t words[4] = {};
#pragma unroll
    for (int i = 0; i < 16; i++) {
      uint32_t byte = tile.bytes[row(piece, i) * kPitch + piece / 8];
      words[i / 4] |= Scale::translated(tile.table, byte) << (8 * (i % 4));
    }

    return {words[0], words[1], words[2], words[3]};
  }

  __device__ void put(Tile<kPitch> tile, int piece, uint4 value) const {
    uint32_t words[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int i = 0; i < 16; i++) {
      uint32_t byte = words[i / 4] >> (8 * (i % 4)) & 0xff;
      tile.bytes[row(piece, i) * kPitch + piece / 8] = static_cast<unsigned char>(Scale::translated(tile.table, byte));
    }
  }
};

template <typename Layout, bool kRestores>
__global__ void __launch_bounds__(kThreads) tile_kernel(const __grid_constant__ LayoutTask task,
                                                        const __grid_constant__ Layout layout) {
  constexpr int kPieces = Layout::kRows * kRowPieces;
  __shared__ alignas(16) unsigned char bytes[Layout::kRows * Layout::kPitch];
  __shared__ unsigned char *rows[Layout::kRows];
  __shared__ unsigned char table[256];
  const RowShape &shape = task.shape;
  Tile<Layout::kPitch> tile = {bytes, table};
  layout.prepare(table);
  int64_t row_tiles = (shape.matrix_rows + Layout::kRows - 1) / Layout::kRows;
  for (int64_t row_tile = blockIdx.y; row_tile < row_tiles; row_tile += gridDim.y) {
    __syncthreads();
    for (int i = threadIdx.x; i < Layout::kRows; i += kThreads) {
      int member;
      int64_t row = source_row(shape, row_tile * Layout::kRows + i, &member);
      rows[i] = row < 0 ? nullptr : task.members[member] + row * shape.row_bytes;
    }

    for (int64_t at = static_cast<int64_t>(blockIdx.x) * kWidth; at < shape.padded_row_bytes;
         at += static_cast<int64_t>(gridDim.x) * kWidth) {
      Place place = {row_tile * Layout::kRows, at};
      __syncthreads();
#pragma unroll
      for (int piece = threadIdx.x; piece < kPieces; piece += kThreads) {
        int64_t begin = at + piece % kRowPieces * 16;
        if (kRestores) {
          int64_t offset = Layout::offset(shape, place, piece);
          layout.put(tile, piece, offset < 0 ? uint4{} : read16(task.arranged + offset, 16));
        } else {
          const unsigned char *row = rows[piece / kRowPieces];
          tile.put_row_piece(piece / kRowPieces, piece % kRowPieces,
                             row == nullptr ? uint4{} : read16(row + begin, shape.row_bytes - begin));
        }
      }

      __syncthreads();
#pragma unroll
      for (int piece = threadIdx.x; piece < kPieces; piece += kThreads) {
        int64_t begin = at + piece % kRowPieces * 16;
        if (kRestores) {
          unsigned char *row = rows[piece / kRowPieces];
          if (row != nullptr) {
            write16(row + begin, tile.row_piece(piece / kRowPieces, piece % kRowPieces), shape.row_bytes - begin);
          }
        } else {
          int64_t offset = Layout::offset(shape, place, piece);
          if (offset >= 0) {
            write16(task.arranged + offset, layout.get(tile, piece), 16);
          }
        }
      }
    }
  }
}

// Rows as they are: a warp a row.
template <bool kRestores>
__global__ void __launch_bounds__(kThreads) row_kernel(const __grid_constant__ LayoutTask task) {
  const RowShape &shape = task.shape;
  int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  int64_t bytes = kRestores ? shape.row_bytes : shape.padded_row_bytes;
  for (int64_t position = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32;
       position < shape.matrix_rows; position += warps) {
    int member;
    int64_t source = source_row(shape, position, &member);
    unsigned char *row = source < 0 ? nullptr : task.members[member] + source * shape.row_bytes;
    unsigned char *arranged = task.arranged + position * shape.padded_row_bytes;
    if (kRestores && row == nullptr) {
      continue;
    }

#pragma unroll 4
    for (int64_t at = threadIdx.x % 32 * 16; at < bytes; at += 32 * 16) {
      if (kRestores) {
        write16(row + at, read16(arranged + at, shape.row_bytes - at), shape.row_bytes - at);
      } else {
        write16(arranged + at, row == nullptr ? uint4{} : read16(row + at, shape.row_bytes - at),
                shape.padded_row_bytes - at);
      }
    }
  }
}

template <typename Layout>
cudaError_t launch(const Layout &layout, bool restores, const LayoutTask &task, cudaStream_t stream) {
  const RowShape &shape = task.shape;
  if (shape.bytes() == 0) {
    return cudaSuccess;
  }

  int64_t chunks = (shape.padded_row_bytes + kChunksOfBlock * kWidth - 1) / (kChunksOfBlock * kWidth);
  int64_t tiles = (shape.matrix_rows + Layout::kRows - 1) / Layout::kRows;
  dim3 grid(static_cast<unsigned>(chunks < kMaxGrid ? chunks : kMaxGrid),
            static_cast<unsigned>(tiles < kMaxGrid ? tiles : kMaxGrid));
  if (restores) {
    tile_kernel<Layout, true><<<grid, kThreads, 0, stream>>>(task, layout);
  } else {
    tile_kernel<Layout, false><<<grid, kThreads, 0, stream>>>(task, layout);
  }

  return cudaGetLastError();
}

cudaError_t launch_rows(bool restores, const LayoutTask &task, cudaStream_t stream) {
  if (task.shape.bytes() == 0) {
    return cudaSuccess;
  }

  int64_t blocks = (task.shape.matrix_rows + kThreads / 32 - 1) / (kThreads / 32);
  unsigned grid = static_cast<unsigned>(blocks < kMaxGrid ? blocks : kMaxGrid);
  if (restores) {
    row_kernel<true><<<grid, kThreads, 0, stream>>>(task);
  } else {
    row_kernel<false><<<grid, kThreads, 0, stream>>>(task);
  }

  return cudaGetLastError();
}

__device__ __forceinline__ float e4m3(uint32_t byte) {
  uint32_t magnitude = byte & 0x7f;
  float value = magnitude == 0x7f ? __uint_as_float(0x7fc00000) : __uint_as_float(magnitude << 20) * 0x1p120f;
  return byte < 128 ? value : -value;
}

// A code, in the lowest bits.
__device__ __forceinline__ float e2m1(uint32_t code) {
  float magnitude = __uint_as_float((code & 7) << 22) * 0x1p126f;
  return __uint_as_float(__float_as_uint(magnitude) | (code & 8) << 28);
}

// A thread a lane of 8 codes; two neighbours share a tile's group, and store in turn what is one after another.
__global__ void __launch_bounds__(kThreads) decode_kernel(const __grid_constant__ DecodeTask task) {
  const NVFP4Tensor &view = task.view;
  int64_t warps = static_cast<int64_t>(gridDim.x) * (kThreads / 32);
  int32_t lanes = static_cast<int32_t>(task.k / 8);
  for (int64_t row = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) / 32; row < task.experts * task.rows;
       row += warps) {
    int32_t expert = static_cast<int32_t>(row / task.rows);
    int32_t of_expert = static_cast<int32_t>(row - expert * task.rows);
    float global = nvfp4TensorScaleAt(view.global_scale, expert);
    for (int32_t first = 0; first < lanes; first += 32) {
      int32_t lane = first + static_cast<int32_t>(threadIdx.x % 32);
      bool is_there = lane < lanes;
      unsigned active = __ballot_sync(0xffffffff, is_there);
      if (!is_there) {
        continue;
      }

      Dim3 tile = task.is_activation ? Dim3{of_expert, lane / 8, 0} : Dim3{expert, of_expert, lane / 8};
      uint32_t word = task.is_activation ? view.readBlockScaleWordLinear(tile) : view.readBlockScaleWord(tile);
      uint32_t codes = view.loadTileUint32Lane(tile, lane / 4 % 2, lane % 4);
      float d = __fmul_rn(e4m3(scale_of_word(word, lane % 8 / 2)), global);
      uint32_t bits[8];
#pragma unroll
      for (int i = 0; i < 8; i++) {
        float value = __fmul_rn(e2m1(codes >> (4 * i)), d);
        bits[i] = value == value ? __float_as_uint(value) : 0x7fc00000;
      }

      int64_t element = row * task.k + 8 * static_cast<int64_t>(lane);
      if (task.dtype == SPARKFP4_F32) {
        bool is_odd = lane % 2 != 0;
        uint32_t given[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
          given[i] = __shfl_xor_sync(active, is_odd ? bits[i] : bits[4 + i], 1);
        }

        unsigned char *pair = task.out + 4 * (element - (is_odd ? 8 : 0)) + (is_odd ? 16 : 0);
        uint4 of_other = {given[0], given[1], given[2], given[3]};
        write16(pair, is_odd ? of_other : uint4{bits[0], bits[1], bits[2], bits[3]}, 16);
        write16(pair + 32, is_odd ? uint4{bits[4], bits[5], bits[6], bits[7]} : of_other, 16);
      } else {
        uint32_t halves[4];
#pragma unroll
        for (int i = 0; i < 8; i++) {
          uint32_t half = (bits[i] + 0x7fff + (bits[i] >> 16 & 1)) >> 16;
          halves[i / 2] = i % 2 == 0 ? half : halves[i / 2] | half << 16;
        }

        write16(task.out + 2 * element, {halves[0], halves[1], halves[2], halves[3]}, 16);
      }
    }
  }
}

}  // namespace

cudaError_t launch_codes(sparkfp4_code_layout layout, bool restores, const LayoutTask &task, cudaStream_t stream) {
  switch (layout) {
    case SPARKFP4_CODES_BLACKWELL_MOE_N128_K64:
      return launch(BlackwellCodes<true>(), restores, task, stream);
    case SPARKFP4_CODES_BLACKWELL_N128_K64:
      return launch(BlackwellCodes<false>(), restores, task, stream);
    case SPARKFP4_CODES_MARLIN:
      return launch(MarlinCodes(), restores, task, stream);
    default:
      return launch_rows(restores, task, stream);
  }
}

cudaError_t launch_scales(sparkfp4_scale_layout layout, bool restores, const LayoutTask &task, const ScaleTable *table,
                          cudaStream_t stream) {
  switch (layout) {
    case SPARKFP4_SCALES_ATOM_128X4:
      return launch(ScaleWords<128, true>(), restores, task, stream);
    case SPARKFP4_SCALES_ATOM_8X4:
      return launch(ScaleWords<8, false>(), restores, task, stream);
    case SPARKFP4_SCALES_BLACKWELL_N128_K64:
      return launch(ScaleWords<128, false>(), restores, task, stream);
    case SPARKFP4_SCALES_MARLIN_E4M3:
      return launch(MarlinScales<SameScale>(), restores, task, stream);
    case SPARKFP4_SCALES_MARLIN_S0E5M3:
      return launch(MarlinScales<TableScale>{{*table}}, restores, task, stream);
    default:
      return launch_rows(restores, task, stream);
  }
}

cudaError_t launch_decode(const DecodeTask &task, cudaStream_t stream) {
  int64_t rows = task.experts * task.rows;
  if (rows * task.k == 0) {
    return cudaSuccess;
  }

  int64_t blocks = (rows + kThreads / 32 - 1) / (kThreads / 32);
  decode_kernel<<<static_cast<unsigned>(blocks < kMaxGrid ? blocks : kMaxGrid), kThreads, 0, stream>>>(task);
  return cudaGetLastError();
}

}  // namespace sparkfp4::cuda
