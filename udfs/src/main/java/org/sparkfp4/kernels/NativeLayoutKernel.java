package org.sparkfp4.kernels;

import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.CodeLayout;
import org.sparkfp4.formats.ElementType;

/** The layout kernels of a native library. */
final class NativeLayoutKernel implements LayoutKernel {
  private final LayoutCalls calls;

  NativeLayoutKernel(LayoutCalls calls) {
    this.calls = calls;
  }

  @Override
  public String tier() {
    return calls.tier();
  }

  @Override
  public void arrangeCodes(CodeLayout layout, Arrangement shape, long[] members, long out) {
    check(layout, shape, members);
    check(calls.arrangeCodes(layout.ordinal(), numbers(shape), members, out));
  }

  @Override
  public void restoreCodes(CodeLayout layout, Arrangement shape, long arranged, long[] members) {
    check(layout, shape, members);
    check(calls.restoreCodes(layout.ordinal(), numbers(shape), arranged, members));
  }

  @Override
  public void arrangeScales(BlockScaleLayout layout, Arrangement shape, long[] members, float factor, long out) {
    check(layout, shape, members, factor);
    check(calls.arrangeScales(layout.ordinal(), numbers(shape), members, factor, out));
  }

  @Override
  public void restoreScales(BlockScaleLayout layout, Arrangement shape, long arranged, float factor, long[] members) {
    check(layout, shape, members, factor);
    check(calls.restoreScales(layout.ordinal(), numbers(shape), arranged, factor, members));
  }

  @Override
  public long firstAbove(long scales, long count, int limit) {
    long[] where = new long[1];
    check(calls.firstAbove(scales, count, limit, where));
    return where[0];
  }

  @Override
  public void decode(TensorMemory tensor, ElementType type, long out) {
    LayoutArguments.checkDecoded(type);
    check(calls.decode(tensor, NativeKernel.code(type), out));
  }

  private static void check(CodeLayout layout, Arrangement shape, long[] members) {
    LayoutArguments.checkMembers(shape, members);
    // Refuses what the layout does not take, in words.
    layout.bytes(shape.matrixRows(), shape.paddedK());
  }

  private static void check(BlockScaleLayout layout, Arrangement shape, long[] members, float factor) {
    LayoutArguments.checkMembers(shape, members);
    layout.bytes(shape.matrixRows(), shape.paddedColumns());
    layout.checkFactor(factor);
  }

  private void check(int status) {
    switch (status) {
      case NativeBinding.OK -> { }
      case NativeBinding.OUT_OF_MEMORY -> throw new OutOfMemoryError("Cannot allocate the members of a native kernel");
      default -> throw calls.failure(status);
    }
  }

  private static long[] numbers(Arrangement shape) {
    return new long[] {shape.order().ordinal(), shape.rows(), shape.paddedRows(), shape.k(), shape.paddedK()};
  }
}
