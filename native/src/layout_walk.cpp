#include "layout_walk.h"

#include <cstring>

namespace sparkfp4 {
namespace {

// Where rows of the matrix come from, or go to, in their order. Those that follow each other in a member too are found
// without a division.
template <typename Byte>
class Rows {
 public:
  Rows(const RowShape &shape, Byte *const *members) : shape_(shape), members_(members) {}

  // The next row; null for one of padding.
  Byte *next() {
    if (left_ == 0) {
      row_ = source_row(shape_, position_, &member_);
      left_ = run();
    } else if (row_ >= 0) {
      row_ = row_ + 1 < shape_.rows ? row_ + 1 : -1;
    }

    position_++;
    left_--;
    return row_ < 0 ? nullptr : members_[member_] + row_ * shape_.row_bytes;
  }

 private:
  // Rows from here on that follow each other.
  int64_t run() const {
    switch (position_ < shape_.members * shape_.padded_rows ? shape_.order : SPARKFP4_PLAIN) {
      case SPARKFP4_PLAIN:
        return shape_.matrix_rows - position_;
      case SPARKFP4_CONCATENATED:
        return shape_.padded_rows - position_ % shape_.padded_rows;
      case SPARKFP4_INTERLEAVED_64:
        return 64 - position_ % 64;
      default:
        return 1;
    }
  }

  const RowShape &shape_;
  Byte *const *members_;
  int64_t position_ = 0;
  int64_t left_ = 0;
  int64_t row_ = -1;
  int member_ = 0;
};

// Blocks in their order: a band of rows from left to right, of blocks together from top to bottom.
template <typename Byte>
class Blocks {
 public:
  Blocks(const RowShape &shape, const BlockShape &block, Byte *const *members)
      : shape_(shape), block_(block), finder_(shape, members), groups_(shape.matrix_rows / block.rows) {
    find();
  }

  bool ended() const { return first_ == groups_ || shape_.padded_row_bytes == 0; }
  int64_t at() const { return at_; }
  Byte *const *rows() const { return rows_[in_band_]; }
  // Whether the block is inside all its rows.
  bool is_whole() const { return all_[in_band_] && at_ + kLine <= shape_.row_bytes; }

  // Where a block's first piece begins in the matrix, and the next ones from there.
  int64_t first_piece() const {
    int64_t group = first_ + in_band_;
    int64_t parts = block_.tile_rows / block_.rows;
    int64_t tile = group / parts;
    int64_t number = at_ / block_.width();
    int64_t place = block_.is_piece_major ? number * tiles() + tile : tile * pieces() + number;
    return (place * parts + group % parts) * block_.piece_bytes();
  }
  int64_t stride() const {
    return static_cast<int64_t>(block_.tile_rows) * block_.width() * (block_.is_piece_major ? tiles() : 1);
  }
  // Pieces that the matrix has of the block.
  int count() const {
    int64_t left = (shape_.padded_row_bytes - at_) / block_.width();
    return static_cast<int>(left < block_.pieces ? left : block_.pieces);
  }
  // Bytes that a row has of the block.
  size_t bytes_there(int row) const {
    int64_t left = rows()[row] == nullptr || at_ >= shape_.row_bytes ? 0 : shape_.row_bytes - at_;
    return static_cast<size_t>(left < kLine ? left : kLine);
  }

  void advance() {
    in_band_++;
    if (in_band_ < band_) {
      return;
    }

    in_band_ = 0;
    at_ += kLine;
    if (at_ >= shape_.padded_row_bytes) {
      at_ = 0;
      first_ += band_;
      find();
    }
  }

 private:
  int64_t pieces() const { return shape_.padded_row_bytes / block_.width(); }
  int64_t tiles() const { return shape_.matrix_rows / block_.tile_rows; }

  // The rows of the next band.
  void find() {
    int64_t left = groups_ - first_;
    band_ = static_cast<int>(left < block_.together ? left : block_.together);
    for (int i = 0; i < band_; i++) {
      all_[i] = true;
      for (int row = 0; row < block_.rows; row++) {
        rows_[i][row] = finder_.next();
        all_[i] = all_[i] && rows_[i][row] != nullptr;
      }
    }
  }

  const RowShape &shape_;
  const BlockShape &block_;
  Rows<Byte> finder_;
  const int64_t groups_;  // blocks from top to bottom
  int64_t first_ = 0;     // of the band
  int band_ = 0;
  int in_band_ = 0;
  int64_t at_ = 0;
  bool all_[kMostTogether];
  Byte *rows_[kMostTogether][kMostRows];
};

// The first level holds few lines whose addresses differ by large powers of two.
constexpr int kSecondLevel = 2;

// Asks for the lines of a block of rows: there are more of them than hardware would foresee.
template <typename Byte>
void prefetch_rows(const BlockShape &block, const Blocks<Byte> &blocks) {
  for (int i = 0; i < block.rows; i++) {
    __builtin_prefetch(blocks.rows()[i] + blocks.at(), 0, kSecondLevel);
  }
}

void prefetch_pieces(const BlockShape &block, const unsigned char *first, int64_t stride) {
  for (int piece = 0; piece < block.pieces; piece++) {
    for (int line = 0; line < block.piece_bytes(); line += kLine) {
      __builtin_prefetch(first + piece * stride + line, 0, kSecondLevel);
    }
  }
}

}  // namespace

bool Walk::streams_out(const void *out, int tile_rows) const {
  return shape_.bytes() >= kStreamedBytes && is_line(out) && shape_.padded_row_bytes * tile_rows % kLine == 0;
}

bool Walk::streams_members(const unsigned char *const *members) const {
  bool aligned = shape_.row_bytes % kLine == 0;
  for (int64_t i = 0; i < shape_.members; i++) {
    aligned = aligned && is_line(members[i]);
  }

  return aligned && shape_.members * shape_.rows * shape_.row_bytes >= kStreamedBytes;
}

void Walk::arrange(const BlockMoves &moves, const MarlinScale *scale, const unsigned char *const *members,
                   unsigned char *out) const {
  const BlockShape &block = *moves.shape;
  const bool streams = streams_out(out, block.tile_rows);
  alignas(kLine) unsigned char lines[kMostRows * kLine];
  alignas(kLine) unsigned char edge[kMostRows * kLine];
  const unsigned char *in_lines[kMostRows];
  for (int i = 0; i < block.rows; i++) {
    in_lines[i] = lines + i * kLine;
  }

  Blocks<const unsigned char> ahead(shape_, block, members);
  for (Blocks<const unsigned char> blocks(shape_, block, members); !blocks.ended(); blocks.advance()) {
    ahead.advance();
    if (!ahead.ended() && ahead.is_whole()) {
      prefetch_rows(block, ahead);
      if (!streams) {
        prefetch_pieces(block, out + ahead.first_piece(), ahead.stride());
      }
    }

    unsigned char *pieces = out + blocks.first_piece();
    if (blocks.is_whole()) {
      moves.arrange[streams](blocks.rows(), blocks.at(), pieces, blocks.stride(), scale);
      continue;
    }

    for (int i = 0; i < block.rows; i++) {
      size_t bytes = blocks.bytes_there(i);
      std::memset(lines + i * kLine + bytes, 0, kLine - bytes);
      if (bytes > 0) {
        std::memcpy(lines + i * kLine, blocks.rows()[i] + blocks.at(), bytes);
      }
    }

    moves.arrange[0](in_lines, 0, edge, block.piece_bytes(), scale);
    for (int piece = 0; piece < blocks.count(); piece++) {
      std::memcpy(pieces + piece * blocks.stride(), edge + piece * block.piece_bytes(),
                  static_cast<size_t>(block.piece_bytes()));
    }
  }

  kernel_.fence();
}

void Walk::restore(const BlockMoves &moves, const MarlinScale *scale, const unsigned char *arranged,
                   unsigned char *const *members) const {
  const BlockShape &block = *moves.shape;
  const bool streams = streams_members(members);
  alignas(kLine) unsigned char lines[kMostRows * kLine];
  alignas(kLine) unsigned char edge[kMostRows * kLine] = {};
  unsigned char *in_lines[kMostRows];
  for (int i = 0; i < block.rows; i++) {
    in_lines[i] = lines + i * kLine;
  }

  Blocks<unsigned char> ahead(shape_, block, members);
  for (Blocks<unsigned char> blocks(shape_, block, members); !blocks.ended(); blocks.advance()) {
    ahead.advance();
    if (!ahead.ended() && ahead.is_whole()) {
      prefetch_pieces(block, arranged + ahead.first_piece(), ahead.stride());
      if (!streams) {
        prefetch_rows(block, ahead);
      }
    }

    const unsigned char *pieces = arranged + blocks.first_piece();
    if (blocks.is_whole()) {
      moves.restore[streams](pieces, blocks.stride(), blocks.rows(), blocks.at(), scale);
      continue;
    }

    for (int piece = 0; piece < blocks.count(); piece++) {
      std::memcpy(edge + piece * block.piece_bytes(), pieces + piece * blocks.stride(),
                  static_cast<size_t>(block.piece_bytes()));
    }

    moves.restore[0](edge, block.piece_bytes(), in_lines, 0, scale);
    for (int i = 0; i < block.rows; i++) {
      size_t bytes = blocks.bytes_there(i);
      if (bytes > 0) {
        std::memcpy(blocks.rows()[i] + blocks.at(), lines + i * kLine, bytes);
      }
    }
  }

  kernel_.fence();
}

void Walk::copy(bool streams, unsigned char *to, const unsigned char *from) const {
  if (streams) {
    kernel_.stream(to, from, shape_.row_bytes);
  } else if (shape_.row_bytes > 0) {
    std::memcpy(to, from, static_cast<size_t>(shape_.row_bytes));
  }
}

void Walk::arrange_rows(const unsigned char *const *members, unsigned char *out) const {
  const bool streams = streams_out(out, 1) && shape_.row_bytes % kLine == 0;
  Rows<const unsigned char> rows(shape_, members);
  for (int64_t position = 0; position < shape_.matrix_rows; position++) {
    const unsigned char *row = rows.next();
    unsigned char *to = out + position * shape_.padded_row_bytes;
    int64_t bytes = row == nullptr ? 0 : shape_.row_bytes;
    if (row != nullptr) {
      copy(streams, to, row);
    }

    std::memset(to + bytes, 0, static_cast<size_t>(shape_.padded_row_bytes - bytes));
  }

  kernel_.fence();
}

void Walk::restore_rows(const unsigned char *arranged, unsigned char *const *members) const {
  const bool streams = streams_members(members);
  Rows<unsigned char> rows(shape_, members);
  for (int64_t position = 0; position < shape_.matrix_rows; position++) {
    unsigned char *row = rows.next();
    if (row != nullptr) {
      copy(streams, row, arranged + position * shape_.padded_row_bytes);
    }
  }

  kernel_.fence();
}

}  // namespace sparkfp4
