package org.sparkfp4.verify;

import org.sparkfp4.checkpoint.LocatedTensor;

/** A matrix by slabs of whole rows, small enough to hold in memory in every form. */
final class RowSlabs {
  /** Source bytes of a slab; a longer row is a slab of its own. */
  private static final long SLAB_BYTES = 4 << 20;

  private final long rows;
  private final long rowsPerSlab;

  RowSlabs(LocatedTensor matrix) {
    rows = matrix.rows();
    rowsPerSlab = Math.max(1, Math.min(rows, SLAB_BYTES / matrix.dtype().bytes(matrix.cols())));
  }

  long rows() {
    return rows;
  }

  /** Rows of all slabs but the last, which may have fewer. */
  int rowsPerSlab() {
    return Math.toIntExact(rowsPerSlab);
  }

  /** Rows of the slab that begins at {@code row}. */
  int rowsFrom(long row) {
    return (int) Math.min(rowsPerSlab, rows - row);
  }
}
