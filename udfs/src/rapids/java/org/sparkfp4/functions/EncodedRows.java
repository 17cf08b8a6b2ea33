package org.sparkfp4.functions;

import java.util.Arrays;

/** What is found beside the bytes of a batch's rows, gathered for its columns in the order of the result's fields. */
final class EncodedRows {
  private final float[] amax;
  private final float[] globalScale;
  private final int[] offsets;
  private double[] sumSquares = {};
  private double[] squaredErrors = {};
  private long[] requantized = {};
  private int row;

  EncodedRows(int rows) {
    this.amax = new float[rows];
    this.globalScale = new float[rows];
    this.offsets = new int[rows + 1];
  }

  /** The next row's, null where the row is null. */
  void add(WeightUnit.Encoded encoded) {
    int start = offsets[row];
    if (encoded != null) {
      amax[row] = encoded.amax();
      globalScale[row] = encoded.globalScale();
      int end = start + encoded.sums().length;
      sumSquares = Arrays.copyOf(sumSquares, end);
      squaredErrors = Arrays.copyOf(squaredErrors, end);
      requantized = Arrays.copyOf(requantized, end);
      System.arraycopy(encoded.sumSquares(), 0, sumSquares, start, end - start);
      System.arraycopy(encoded.squaredErrors(), 0, squaredErrors, start, end - start);
      System.arraycopy(encoded.requantized(), 0, requantized, start, end - start);
    }

    row++;
    offsets[row] = sumSquares.length;
  }

  /** Adds the fields that follow packed and scales. */
  void addTo(ColumnBuilder result) {
    result.addFloats(amax);
    result.addDoubleLists(offsets, sumSquares);
    result.addDoubleLists(offsets, squaredErrors);
    result.addFloats(globalScale);
    result.addLongLists(offsets, requantized);
  }
}
