// Layouts: a block of threads takes a tile of rows by 128 bytes through shared memory, in pieces of 16 bytes on both
// sides, so that memory is read and written in whole lines.
#include "layout_tiles.cuh"

namespace sparkfp4::cuda {
namespace {

constexpr int64_t kMaxGrid = 65535;

// A tile goes from registers to shared memory and back: all that a thread reads of it is on its way at once.
template <typename Layout, bool kRestores>
__global__ void __launch_bounds__(kThreads, Layout::kBlocks)
    tile_kernel(const __grid_constant__ LayoutTask task, bool is_aligned, const __grid_constant__ Layout layout) {
  constexpr int kOwn = Layout::kRows * kRowPieces / kThreads;
  constexpr int kItems = kOwn / Layout::kAtOnce;
  static_assert(kItems * Layout::kAtOnce * kThreads == Layout::kRows * kRowPieces, "threads have as many pieces each");
  __shared__ alignas(16) unsigned char bytes[Layout::kRows * Layout::kPitch];
  __shared__ unsigned char *rows[Layout::kRows];
  const RowShape &shape = task.shape;
  Tile<Layout> tile = {bytes};
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
      const Place place = {row_tile * Layout::kRows, at};
      // The thread's pieces on both sides: where they are, or null where there is none, and how much of one is there.
      auto row_piece = [&](int i) { return threadIdx.x + i * kThreads; };
      auto row_begin = [&](int i) { return at + row_piece(i) % kRowPieces * 16; };
      auto in_row = [&](int i, int64_t *there) {
        unsigned char *row = rows[row_piece(i) / kRowPieces];
        *there = shape.row_bytes - row_begin(i);
        return row == nullptr || *there <= 0 ? nullptr : row + row_begin(i);
      };
      auto item = [&](int i) { return threadIdx.x + i * kThreads; };
      auto in_matrix = [&](int i, int64_t *there) {
        int64_t offset = Layout::offset(shape, place, item(i / Layout::kAtOnce), i % Layout::kAtOnce);
        *there = 16;
        return offset < 0 ? nullptr : task.arranged + offset;
      };
      uint4 own[kOwn];
      __syncthreads();
      if constexpr (kRestores) {
        read_pieces<kOwn>(in_matrix, is_aligned, own);
#pragma unroll
        for (int i = 0; i < kItems; i++) {
          layout.put(tile, item(i), own + i * Layout::kAtOnce);
        }
      } else {
        read_pieces<kOwn>(in_row, is_aligned, own);
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
          tile.put_row_piece(row_piece(i) / kRowPieces, row_piece(i) % kRowPieces, own[i]);
        }
      }

      __syncthreads();
      if constexpr (kRestores) {
#pragma unroll
        for (int i = 0; i < kOwn; i++) {
          own[i] = tile.row_piece(row_piece(i) / kRowPieces, row_piece(i) % kRowPieces);
        }

        write_pieces<kOwn>(in_row, is_aligned, own);
      } else {
#pragma unroll
        for (int i = 0; i < kItems; i++) {
          layout.get(tile, item(i), own + i * Layout::kAtOnce);
        }

        write_pieces<kOwn>(in_matrix, is_aligned, own);
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

// Whether all pieces are whole and at their alignment.
bool is_aligned_task(const LayoutTask &task) {
  bool aligned = is_aligned(task.arranged, 16) && task.shape.row_bytes % 16 == 0;
  for (int64_t i = 0; i < task.shape.members; i++) {
    aligned = aligned && is_aligned(task.members[i], 16);
  }

  return aligned;
}

template <typename Layout>
cudaError_t launch(const Layout &layout, bool restores, const LayoutTask &task, cudaStream_t stream) {
  const RowShape &shape = task.shape;
  if (shape.bytes() == 0) {
    return cudaSuccess;
  }

  int64_t chunks = (shape.padded_row_bytes + Layout::kTiles * kWidth - 1) / (Layout::kTiles * kWidth);
  int64_t tiles = (shape.matrix_rows + Layout::kRows - 1) / Layout::kRows;
  dim3 grid(static_cast<unsigned>(chunks < kMaxGrid ? chunks : kMaxGrid),
            static_cast<unsigned>(tiles < kMaxGrid ? tiles : kMaxGrid));
  if (restores) {
    tile_kernel<Layout, true><<<grid, kThreads, 0, stream>>>(task, is_aligned_task(task), layout);
  } else {
    tile_kernel<Layout, false><<<grid, kThreads, 0, stream>>>(task, is_aligned_task(task), layout);
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

cudaError_t launch_scales(sparkfp4_scale_layout layout, bool restores, const LayoutTask &task, int exponent,
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
      return launch(MarlinScales<VllmScale>{{marlin_words(MarlinScale(exponent))}}, restores, task, stream);
    default:
      return launch_rows(restores, task, stream);
  }
}

}  // namespace sparkfp4::cuda
