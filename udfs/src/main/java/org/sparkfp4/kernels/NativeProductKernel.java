package org.sparkfp4.kernels;

/** A tier of the native library's products. */
final class NativeProductKernel implements ProductKernel {
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
    long[] places = new long[3 * ProductBinding.NUMBERS];
    place(a, places, 0);
    place(b, places, ProductBinding.NUMBERS);
    place(c, places, 2 * ProductBinding.NUMBERS);
    int status = ProductBinding.add(tier.ordinal(), a.values(), b.values(), c.values(), places);
    if (status != NativeBinding.OK) {
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
