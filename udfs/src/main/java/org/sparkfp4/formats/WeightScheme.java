package org.sparkfp4.formats;

import java.util.Arrays;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How a quantized source stores a tensor [rows, cols]: codes, and a scale for every block of blockRows x blockCols of
 * them. {@code w[i][j] = decode(code[i][j]) * scale[i / blockRows][j / blockCols]}, one binary32 product rounded once.
 * The blocks at the lower and right edge may be partial. Codes and scales are row-major, {@link #codeBytes} and
 * {@link #scaleBytes} long.
 *
 * @param codes the elements' type
 * @param scales the scales' type
 * @param blockRows rows that share a scale; 0 for all of the tensor's
 * @param blockCols columns that share a scale, a multiple of {@link Nvfp4#BLOCK}; 0 for all of the tensor's
 */
public record WeightScheme(CodeType codes, ScaleType scales, long blockRows, long blockCols) {
  private static final Pattern TEXT = Pattern.compile("(\\w+)/(\\w+)/(\\d+|\\*)x(\\d+|\\*)");
  private static final String ALL = "*";

  /** @throws IllegalArgumentException if blockCols is no multiple of 16 */
  public WeightScheme {
    blockRows = Math.max(0, blockRows);
    blockCols = Math.max(0, blockCols);
    if (blockCols % Nvfp4.BLOCK != 0) {
      throw new IllegalArgumentException("Invalid scale block: " + blockCols + " columns of " + codes
          + ", must be a multiple of " + Nvfp4.BLOCK + " so that a block of NVFP4 has one source scale");
    }
  }

  /** The scheme that {@link #text} wrote. */
  public static WeightScheme parse(String text) {
    Matcher matcher = TEXT.matcher(text);
    if (!matcher.matches()) {
      throw new IllegalArgumentException(
          "Invalid weight scheme: " + text + ", must be like E4M3/F32/128x128 or E4M3/BF16/1x*");
    }

    return new WeightScheme(named(CodeType.values(), matcher.group(1), text),
        named(ScaleType.values(), matcher.group(2), text), size(matcher.group(3), text), size(matcher.group(4), text));
  }

  /** The scheme in one word, such as {@code E4M3/F32/128x128}; {@code *} stands for all rows or columns. */
  public String text() {
    return codes + "/" + scales + "/" + size(blockRows) + "x" + size(blockCols);
  }

  /** Rows of scales of a tensor, or of some of its rows that begin with a block. */
  public long scaleRows(long rows) {
    return blocks(rows, blockRows);
  }

  /** Scales a row of scales. */
  public long scaleCols(long cols) {
    return blocks(cols, blockCols);
  }

  /** Bytes of the codes of [rows, cols]. */
  public long codeBytes(long rows, long cols) {
    return Math.multiplyExact(rows, codes.rowBytes(cols));
  }

  /** Bytes of the scales of [rows, cols]. */
  public long scaleBytes(long rows, long cols) {
    return Math.multiplyExact(Math.multiplyExact(scaleRows(rows), scaleCols(cols)), scales.bytes());
  }

  private static long blocks(long side, long blockSide) {
    return side == 0 ? 0 : blockSide == 0 ? 1 : (side + blockSide - 1) / blockSide;
  }

  private static String size(long blockSide) {
    return blockSide == 0 ? ALL : Long.toString(blockSide);
  }

  private static long size(String blockSide, String text) {
    long size;
    try {
      size = blockSide.equals(ALL) ? 0 : Long.parseLong(blockSide);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("Invalid weight scheme: " + text + ", " + blockSide + " is too large", e);
    }

    if (size == 0 && !blockSide.equals(ALL)) {
      throw new IllegalArgumentException("Invalid weight scheme: " + text + ", a block has no rows or columns");
    }

    return size;
  }

  private static <T extends Enum<T>> T named(T[] values, String name, String text) {
    return Arrays.stream(values).filter(value -> value.name().equals(name)).findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid weight scheme: " + text + ", " + name
            + " is none of " + Arrays.toString(values)));
  }
}
