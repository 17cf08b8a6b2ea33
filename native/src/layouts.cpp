// The C interface of layouts: checks arguments, walks a matrix by blocks, deals with edges and padding.
#include "kernel.h"
#include "layout_blocks.h"
#include "layout_shape.h"
#include "marlin_kernel.h"

namespace sparkfp4 {
namespace {

const MarlinKernel &marlin_kernel(sparkfp4_tier tier) {
  switch (tier) {
#ifdef SPARKFP4_X86
    case SPARKFP4_AVX2:
      return kMarlinAvx2;
    case SPARKFP4_AVX512:
      return kMarlinAvx512;
#endif
    default:
      return kMarlinScalar;
  }
}

// Eight of Marlin's tiles of codes.
struct MarlinTiles {
  static constexpr int kRows = 64;
  static constexpr int kPieces = 8;
  static constexpr bool kPieceMajor = true;

  const MarlinKernel &kernel;

  void arrange(const unsigned char *const *rows, int64_t at, unsigned char *const *pieces) const {
    kernel.arrange(rows, at, pieces);
  }
  void restore(const unsigned char *const *pieces, unsigned char *const *rows, int64_t at) const {
    kernel.restore(pieces, rows, at);
  }
};

// The rows of a tile, null where there is padding; whether all are there.
template <typename Byte, int kRows>
bool find_rows(const RowShape &shape, int64_t first, Byte *const *members, Byte *(&rows)[kRows]) {
  bool all = true;
  for (int i = 0; i < kRows; i++) {
    int member;
    int64_t row = source_row(shape, first + i, &member);
    rows[i] = row < 0 ? nullptr : members[member] + row * shape.row_bytes;
    all &= row >= 0;
  }

  return all;
}

// Where piece `number` of a row of tiles begins. The pieces of a tile follow each other, or those of a place in the row.
template <typename Block>
int64_t piece_at(const RowShape &shape, int64_t tile, int64_t number) {
  constexpr int64_t kPieceBytes = Block::kRows * kChunk / Block::kPieces;
  int64_t pieces = shape.padded_row_bytes / (kChunk / Block::kPieces);
  int64_t tiles = shape.matrix_rows / Block::kRows;
  return (Block::kPieceMajor ? number * tiles + tile : tile * pieces + number) * kPieceBytes;
}

// The pieces of a block from byte `at` of the rows on, and as many as the row has; others are in a place of no use.
template <typename Block, typename Byte>
void find_pieces(const RowShape &shape, int64_t tile, int64_t at, Byte *arranged, Byte *unused,
                 Byte *(&pieces)[Block::kPieces]) {
  constexpr int64_t kWidth = kChunk / Block::kPieces;
  int64_t left = (shape.padded_row_bytes - at) / kWidth;
  for (int i = 0; i < Block::kPieces; i++) {
    pieces[i] = i < left ? arranged + piece_at<Block>(shape, tile, at / kWidth + i) : unused;
  }
}

// Asks for the lines of the next block, of both sides: there are more of them than hardware would foresee.
template <typename Block, typename Row, typename Piece>
void prefetch(Row *const *rows, int64_t at, Piece *const *pieces) {
  constexpr int kPieceBytes = Block::kRows * kChunk / Block::kPieces;
  for (int i = 0; i < Block::kRows; i++) {
    __builtin_prefetch(rows[i] + at);
  }

  for (int i = 0; i < Block::kPieces; i++) {
    for (int line = 0; line < kPieceBytes; line += kChunk) {
      __builtin_prefetch(pieces[i] + line);
    }
  }
}

// Bytes of a row that a block takes; 0 to 64.
size_t bytes_there(const void *row, int64_t at, int64_t row_bytes) {
  int64_t left = row == nullptr || at >= row_bytes ? 0 : row_bytes - at;
  return static_cast<size_t>(left < kChunk ? left : kChunk);
}

// Whether the next block is inside the matrix and its members, so that its lines can be asked for.
bool has_next(const RowShape &shape, int64_t at) { return at + 2 * kChunk <= shape.row_bytes; }

template <typename Block>
void arrange_blocks(const Block &block, const RowShape &shape, const unsigned char *const *members,
                    unsigned char *out) {
  alignas(64) Chunk chunks[Block::kRows];
  alignas(64) unsigned char unused[Block::kRows * kChunk / Block::kPieces];
  const unsigned char *in_chunks[Block::kRows];
  for (int i = 0; i < Block::kRows; i++) {
    in_chunks[i] = chunks[i];
  }

  for (int64_t tile = 0; tile < shape.matrix_rows / Block::kRows; tile++) {
    const unsigned char *rows[Block::kRows];
    bool all = find_rows(shape, tile * Block::kRows, members, rows);
    unsigned char *pieces[Block::kPieces];
    for (int64_t at = 0; at < shape.padded_row_bytes; at += kChunk) {
      if (all && has_next(shape, at)) {
        find_pieces<Block>(shape, tile, at + kChunk, out, unused, pieces);
        prefetch<Block>(rows, at + kChunk, pieces);
      }

      find_pieces<Block>(shape, tile, at, out, unused, pieces);
      if (all && at + kChunk <= shape.row_bytes) {
        block.arrange(rows, at, pieces);
        continue;
      }

      for (int i = 0; i < Block::kRows; i++) {
        size_t bytes = bytes_there(rows[i], at, shape.row_bytes);
        std::memset(chunks[i] + bytes, 0, kChunk - bytes);
        if (bytes > 0) {
          std::memcpy(chunks[i], rows[i] + at, bytes);
        }
      }

      block.arrange(in_chunks, 0, pieces);
    }
  }
}

template <typename Block>
void restore_blocks(const Block &block, const RowShape &shape, const unsigned char *arranged,
                    unsigned char *const *members) {
  alignas(64) Chunk chunks[Block::kRows];
  alignas(64) const unsigned char unused[Block::kRows * kChunk / Block::kPieces] = {};
  unsigned char *in_chunks[Block::kRows];
  for (int i = 0; i < Block::kRows; i++) {
    in_chunks[i] = chunks[i];
  }

  for (int64_t tile = 0; tile < shape.matrix_rows / Block::kRows; tile++) {
    unsigned char *rows[Block::kRows];
    bool all = find_rows(shape, tile * Block::kRows, members, rows);
    const unsigned char *pieces[Block::kPieces];
    for (int64_t at = 0; at < shape.padded_row_bytes; at += kChunk) {
      if (all && has_next(shape, at)) {
        find_pieces<Block>(shape, tile, at + kChunk, arranged, unused, pieces);
        prefetch<Block>(rows, at + kChunk, pieces);
      }

      find_pieces<Block>(shape, tile, at, arranged, unused, pieces);
      if (all && at + kChunk <= shape.row_bytes) {
        block.restore(pieces, rows, at);
        continue;
      }

      block.restore(pieces, in_chunks, 0);
      for (int i = 0; i < Block::kRows; i++) {
        size_t bytes = bytes_there(rows[i], at, shape.row_bytes);
        if (bytes > 0) {
          std::memcpy(rows[i] + at, chunks[i], bytes);
        }
      }
    }
  }
}

void arrange_rows(const RowShape &shape, const unsigned char *const *members, unsigned char *out) {
  for (int64_t position = 0; position < shape.matrix_rows; position++) {
    int member;
    int64_t row = source_row(shape, position, &member);
    unsigned char *to = out + position * shape.padded_row_bytes;
    int64_t bytes = row < 0 ? 0 : shape.row_bytes;
    if (bytes > 0) {
      std::memcpy(to, members[member] + row * shape.row_bytes, static_cast<size_t>(bytes));
    }

    std::memset(to + bytes, 0, static_cast<size_t>(shape.padded_row_bytes - bytes));
  }
}

void restore_rows(const RowShape &shape, const unsigned char *arranged, unsigned char *const *members) {
  for (int64_t position = 0; position < shape.matrix_rows; position++) {
    int member;
    int64_t row = source_row(shape, position, &member);
    if (row >= 0 && shape.row_bytes > 0) {
      std::memcpy(members[member] + row * shape.row_bytes, arranged + position * shape.padded_row_bytes,
                  static_cast<size_t>(shape.row_bytes));
    }
  }
}

// A matrix on its way to a layout.
struct Arrange {
  const RowShape &shape;
  const unsigned char *const *members;
  unsigned char *out;

  template <typename Block>
  void operator()(const Block &block) const {
    arrange_blocks(block, shape, members, out);
  }
  void rows() const { arrange_rows(shape, members, out); }
};

// And back.
struct Restore {
  const RowShape &shape;
  const unsigned char *arranged;
  unsigned char *const *members;

  template <typename Block>
  void operator()(const Block &block) const {
    restore_blocks(block, shape, arranged, members);
  }
  void rows() const { restore_rows(shape, arranged, members); }
};

template <typename Way>
void move_codes(sparkfp4_tier tier, sparkfp4_code_layout layout, const Way &way) {
  switch (layout) {
    case SPARKFP4_CODES_BLACKWELL_MOE_N128_K64:
      return way(BlackwellCodes<true>());
    case SPARKFP4_CODES_BLACKWELL_N128_K64:
      return way(BlackwellCodes<false>());
    case SPARKFP4_CODES_MARLIN:
      return way(MarlinTiles{marlin_kernel(tier)});
    default:
      return way.rows();
  }
}

template <typename Way>
void move_scales(sparkfp4_scale_layout layout, int factor, const Way &way) {
  switch (layout) {
    case SPARKFP4_SCALES_ATOM_128X4:
      return way(ScaleWords<128, true>());
    case SPARKFP4_SCALES_ATOM_8X4:
      return way(ScaleWords<8, false>());
    case SPARKFP4_SCALES_BLACKWELL_N128_K64:
      return way(ScaleWords<128, false>());
    case SPARKFP4_SCALES_MARLIN_E4M3:
      return way(MarlinScales<SameScale>{{}});
    case SPARKFP4_SCALES_MARLIN_S0E5M3:
      return way(MarlinScales<MarlinScale>{MarlinScale(factor)});
    default:
      return way.rows();
  }
}

const unsigned char *bytes_of(const void *data) { return static_cast<const unsigned char *>(data); }
unsigned char *bytes_of(void *data) { return static_cast<unsigned char *>(data); }

// The members as bytes.
template <typename Byte, typename Void>
struct Members {
  Byte *data[SPARKFP4_MAX_MEMBERS];

  Members(const RowShape &shape, Void *const *members) {
    for (int64_t i = 0; i < shape.members; i++) {
      data[i] = bytes_of(members[i]);
    }
  }
};

using Sources = Members<const unsigned char, const void>;
using Targets = Members<unsigned char, void>;

}  // namespace
}  // namespace sparkfp4

using namespace sparkfp4;

int64_t sparkfp4_arranged_code_bytes(sparkfp4_code_layout layout, const sparkfp4_arrangement *shape) {
  RowShape rows;
  return code_shape(layout, shape, &rows) ? rows.bytes() : -1;
}

int64_t sparkfp4_arranged_scale_bytes(sparkfp4_scale_layout layout, const sparkfp4_arrangement *shape) {
  RowShape rows;
  return scale_shape(layout, shape, &rows) ? rows.bytes() : -1;
}

sparkfp4_status sparkfp4_arrange_codes(sparkfp4_tier tier, sparkfp4_code_layout layout,
                                       const sparkfp4_arrangement *shape, const void *const *members, void *out) {
  RowShape rows;
  if (!code_shape(layout, shape, &rows) || !valid_members(rows, members, out)) {
    return SPARKFP4_INVALID;
  }

  if (kernel(tier) == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  move_codes(tier, layout, Arrange{rows, Sources(rows, members).data, bytes_of(out)});
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_restore_codes(sparkfp4_tier tier, sparkfp4_code_layout layout,
                                       const sparkfp4_arrangement *shape, const void *arranged, void *const *members) {
  RowShape rows;
  if (!code_shape(layout, shape, &rows) || !valid_members(rows, members, arranged)) {
    return SPARKFP4_INVALID;
  }

  if (kernel(tier) == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  move_codes(tier, layout, Restore{rows, bytes_of(arranged), Targets(rows, members).data});
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_arrange_scales(sparkfp4_tier tier, sparkfp4_scale_layout layout,
                                        const sparkfp4_arrangement *shape, const void *const *members, float factor,
                                        void *out) {
  RowShape rows;
  int exponent = factor_exponent(layout, factor);
  if (!scale_shape(layout, shape, &rows) || exponent < 0 || !valid_members(rows, members, out)) {
    return SPARKFP4_INVALID;
  }

  if (kernel(tier) == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  move_scales(layout, exponent, Arrange{rows, Sources(rows, members).data, bytes_of(out)});
  return SPARKFP4_OK;
}

sparkfp4_status sparkfp4_restore_scales(sparkfp4_tier tier, sparkfp4_scale_layout layout,
                                        const sparkfp4_arrangement *shape, const void *arranged, float factor,
                                        void *const *members) {
  RowShape rows;
  int exponent = factor_exponent(layout, factor);
  if (!scale_shape(layout, shape, &rows) || exponent < 0 || !valid_members(rows, members, arranged)) {
    return SPARKFP4_INVALID;
  }

  if (kernel(tier) == nullptr) {
    return SPARKFP4_NO_TIER;
  }

  move_scales(layout, exponent, Restore{rows, bytes_of(arranged), Targets(rows, members).data});
  return SPARKFP4_OK;
}
