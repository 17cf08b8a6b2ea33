// Walks a matrix by blocks, or by rows, and deals with edges and padding.
#pragma once

#include "layout_kernel.h"
#include "layout_shape.h"

namespace sparkfp4 {

class Walk {
 public:
  Walk(const LayoutKernel &kernel, const RowShape &shape) : kernel_(kernel), shape_(shape) {}

  void arrange(const BlockMoves &moves, const MarlinScale *scale, const unsigned char *const *members,
               unsigned char *out) const;
  void restore(const BlockMoves &moves, const MarlinScale *scale, const unsigned char *arranged,
               unsigned char *const *members) const;

  // A matrix whose rows are moved only.
  void arrange_rows(const unsigned char *const *members, unsigned char *out) const;
  void restore_rows(const unsigned char *arranged, unsigned char *const *members) const;

 private:
  bool streams_out(const void *out, int tile_rows) const;
  bool streams_members(const unsigned char *const *members) const;
  void copy(bool streams, unsigned char *to, const unsigned char *from) const;

  const LayoutKernel &kernel_;
  const RowShape &shape_;
};

}  // namespace sparkfp4
