package org.sparkfp4.kernels;

/** A tier of the native library's products. */
final class NativeProductKernel implements ProductKernel {
  /** Multiplications of a call: some milliseconds, for which the garbage collector waits. */
  private static final long CALL = 1 << 26;

  private final NativeKernel.Tier tier;

  NativeProductKernel(NativeKernel.Tier tier) {
    this.tier = tier;
  }

  @Override
  public String tier() {
    return tier.title();
  }

  @Override
  public void add(MatrixView a, MatrixView b, MatrixView c) {
    ProductKernel.check(a, b, c);
    int rows = (int) Math.max(ProductBinding.TILE_ROWS,
        CALL / Math.max(1, (long) b.rows() * b.cols()) / ProductBinding.TILE_ROWS * ProductBinding.TILE_ROWS);
    for (int first = 0; first < c.rows(); first += rows) {
      int count = Math.min(rows, c.rows() - first);
      call(a.part(first, 0, count, a.cols()), b, c.part(first, 0, count, c.cols()));
    }
  }

  private void call(MatrixView a, MatrixView b, MatrixView c) {
    long[] places = new long[3 * ProductBinding.NUMBERS];
    place(a, places, 0);
    place(b, places, ProductBinding.NUMBERS);
    place(c, places, 2 * ProductBinding.NUMBERS);
    int status = ProductBinding.add(tier.ordinal(), a.values(), b.values(), c.values(), places);
    switch (status) {
      case NativeBinding.OK -> { }
      case NativeBinding.OUT_OF_MEMORY -> throw new OutOfMemoryError("Cannot hold the arrays of a native kernel");
      default ->
          throw new IllegalStateException("Cannot run the " + tier() + " kernel of products: status " + status);
    }
  }

  private static void place(MatrixView matrix, long[] places, int at) {
    places[at] = matrix.offset();
    places[at + 1] = matrix.rows();
    places[at + 2] = matrix.cols();
    places[at + 3] = matrix.rowStride();
    places[at + 4] = matrix.colStride();
  }
}
