package org.sparkfp4.formats;

/**
 * How a stored-quantized weight is stored: codes, and a scale for each block of them.
 *
 * @param blockRows rows of a block; 0 for all rows
 * @param blockCols columns of a block; 0 for all columns
 */
public record WeightScheme(CodeType codes, ScaleType scales, long blockRows, long blockCols) {
  public String text() {
    return codes + "/" + scales + "/" + blockRows + "x" + blockCols;
  }

  public static WeightScheme parse(String text) {
    String[] parts = text.split("/");
    String[] block = parts[2].split("x");
    return new WeightScheme(
        CodeType.valueOf(parts[0]), ScaleType.valueOf(parts[1]), Long.parseLong(block[0]), Long.parseLong(block[1]));
  }

  public long scaleRows(long rows) {
    return blockRows <= 0 ? 1 : (rows + blockRows - 1) / blockRows;
  }

  public long scaleCols(long cols) {
    return blockCols <= 0 ? 1 : (cols + blockCols - 1) / blockCols;
  }

  public long codeBytes(long rows, long cols) {
    return rows * cols * codes.bits() / 8;
  }

  public long scaleBytes(long rows, long cols) {
    return scaleRows(rows) * scaleCols(cols) * scales.bytes();
  }
}
