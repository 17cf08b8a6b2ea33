package org.sparkfp4.verify;

import java.nio.ByteBuffer;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleChoice;
import org.sparkfp4.formats.ScaleSearch;

/** Quantizes a layer's source again, slab by slab, by the reference, and compares with what the checkpoint has. */
final class Requantization {
  private final QuantizedLayer layer;
  private final Nvfp4Recipe recipe;
  private final SourceRows source;
  private final float amax;
  private final boolean zero;
  private final float globalScale;
  private final ScaleSearch search;
  private final ScaleClaim.Extent extent;
  private final byte[] packed;
  private final byte[] scales;
  private final Mismatch codes = new Mismatch();
  private final Mismatch blockScales = new Mismatch();

  /**
   * @param amax largest magnitude of all weights that share the global scale
   * @param globalScale the global scale to quantize by
   * @param search how block scales are chosen
   * @param extent what can be compared
   * @param source the layer's own weight
   */
  Requantization(
      QuantizedLayer layer,
      float amax,
      float globalScale,
      ScaleSearch search,
      ScaleClaim.Extent extent,
      SourceRows source) {
    this.layer = layer;
    this.recipe = layer.scheme().recipe();
    this.source = source;
    this.amax = amax;
    this.zero = Nvfp4.isZero(amax);
    this.globalScale = globalScale;
    this.search = search;
    this.extent = extent;
    int elements = Math.multiplyExact(source.rowsPerSlab(), source.cols());
    this.packed = new byte[elements / 2];
    this.scales = new byte[elements / Nvfp4.BLOCK];
  }

  /** Compares the slab that begins at {@code row}. */
  void add(long row, int rows, ByteBuffer weights, ByteBuffer storedCodes, ByteBuffer storedScales) {
    long cols = source.cols();
    ByteBuffer ownCodes = ByteBuffer.wrap(packed, 0, storedCodes.limit());
    ByteBuffer ownScales = ByteBuffer.wrap(scales, 0, storedScales.limit());
    if (layer.source().parsed().isMxfp4()) {
      Mxfp4.cast(
          recipe, source.codes(), source.scales(), rows, cols, Mxfp4.exponent(amax), ownCodes, ownScales, null);
    } else if (zero) {
      Nvfp4.encodeZero(recipe, rows, cols, ownCodes, ownScales);
    } else if (extent == ScaleClaim.Extent.ALL) {
      ScaleChoice choice = ScaleChoice.of(search);
      Nvfp4.encode(recipe, choice, source.type(), weights, rows, cols, globalScale, ownCodes, ownScales, null);
    } else if (extent == ScaleClaim.Extent.CODES) {
      ownScales = storedScales;
      Nvfp4.encodeUnder(recipe, source.type(), weights, rows, cols, globalScale, storedScales, ownCodes);
    } else {
      return;
    }

    codes.compare(ownCodes, storedCodes, row * cols / 2);
    blockScales.compare(ownScales, storedScales, row * cols / Nvfp4.BLOCK);
  }

  void report(Differences differences) {
    codes.report(layer.packed().name(), layer.packed().file(), layer.packed().cols(), differences);
    blockScales.report(layer.scales().name(), layer.scales().file(), layer.scales().cols(), differences);
  }

  /** How many bytes differ, and the first. */
  private static final class Mismatch {
    private long count;
    private long firstPlace;
    private int expected;
    private int actual;

    void compare(ByteBuffer own, ByteBuffer stored, long place) {
      for (int i = own.mismatch(stored); i >= 0 && i < own.limit(); i++) {
        if (own.get(i) != stored.get(i)) {
          if (count == 0) {
            firstPlace = place + i;
            expected = own.get(i) & 0xFF;
            actual = stored.get(i) & 0xFF;
          }

          count++;
        }
      }
    }

    void report(String name, String file, long cols, Differences differences) {
      if (count > 0) {
        differences.add(String.format(
            "Tensor %s (%s) differs from the source quantized again in %d bytes, first at [%d, %d]: 0x%02X, expected "
                + "0x%02X",
            name, file, count, firstPlace / cols, firstPlace % cols, actual, expected));
      }
    }
  }
}
