package org.sparkfp4.formats;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How a source stores a weight: plain floating point, or codes with scales beside them.
 *
 * @param plain the type of its elements, or null
 * @param stored its codes and scales, or null
 */
public record SourceScheme(ElementType plain, WeightScheme stored) {
  /** A model has hundreds of thousands of weights, in a few schemes. */
  private static final Map<String, SourceScheme> PARSED = new ConcurrentHashMap<>();

  /**
   * The scheme of that text: an {@link ElementType}'s name or {@link WeightScheme#text}.
   *
   * @throws IllegalArgumentException if it is neither
   */
  public static SourceScheme parse(String text) {
    return text == null ? parsed(null) : PARSED.computeIfAbsent(text, SourceScheme::parsed);
  }

  private static SourceScheme parsed(String text) {
    return text != null && text.indexOf('/') >= 0
        ? new SourceScheme(null, WeightScheme.parse(text))
        : new SourceScheme(ElementType.of(text), null);
  }

  /** Whether weights have scales beside them. */
  public boolean isStored() {
    return stored != null;
  }

  /** Whether it is MXFP4, E2M1 codes with a power of two for 32 of a row, which NVFP4 can stand for exactly. */
  public boolean isMxfp4() {
    return Mxfp4.SCHEME.equals(stored);
  }

  /** The type of the elements as they are encoded: what is dequantized is binary32. */
  public ElementType elements() {
    return isStored() ? ElementType.F32 : plain;
  }

  /** Bytes of the elements or codes of {@code [rows, cols]}. */
  public long dataBytes(long rows, long cols) {
    return isStored()
        ? stored.codeBytes(rows, cols)
        : Math.multiplyExact(Math.multiplyExact(rows, cols), plain.bytes());
  }

  /** Bytes of the scales of {@code [rows, cols]} whose first row begins a block; 0 for plain elements. */
  public long scaleBytes(long rows, long cols) {
    return isStored() ? stored.scaleBytes(rows, cols) : 0;
  }

  /** Where the scales of a row that begins a block are, counted from the tensor's first scale. */
  public long scaleOffset(long row, long cols) {
    return isStored() && stored.blockRows() > 0 && row > 0 ? stored.scaleBytes(row, cols) : 0;
  }

  /** Rows at multiples of which a weight may be cut. */
  public long blockRows() {
    return isStored() && stored.blockRows() > 0 ? stored.blockRows() : 1;
  }
}
