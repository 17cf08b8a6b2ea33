package org.sparkfp4.verify;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/** Decodes a layer and holds it against its source, in memory that does not grow with the layer. */
final class LayerVerifier {
  private final TensorReader source;
  private final TensorReader quantized;
  private final Differences differences;

  LayerVerifier(TensorReader source, TensorReader quantized, Differences differences) {
    this.source = source;
    this.quantized = quantized;
    this.differences = differences;
  }

  /** What the layer is like, or null when its bytes do not let that be said. */
  LayerCheck verify(QuantizedLayer layer) throws IOException {
    float globalScale = quantized.scalar(layer.globalScale());
    float inputScale = layer.inputScale() == null ? Float.NaN : quantized.scalar(layer.inputScale());
    boolean usable = isPositive(layer.globalScale(), globalScale);
    usable &= layer.inputScale() == null || isPositive(layer.inputScale(), inputScale);
    if (!usable) {
      return null;
    }

    try {
      return verify(layer, globalScale, inputScale);
    } catch (BadWeight bad) {
      differences.add(bad.getMessage());
      return null;
    }
  }

  private boolean isPositive(LocatedTensor scalar, float value) {
    if (value > 0 && value <= Float.MAX_VALUE) {
      return true;
    }

    differences.add("Tensor " + scalar.name() + " (" + scalar.file() + ") is " + value
        + ", must be positive and finite");
    return false;
  }

  private LayerCheck verify(QuantizedLayer layer, float globalScale, float inputScale) throws IOException, BadWeight {
    LocatedTensor weight = layer.source();
    ElementType type = ElementType.of(weight.dtype().name());
    Nvfp4Recipe recipe = layer.scheme().recipe();
    RowSlabs slabs = new RowSlabs(weight);
    int cols = Math.toIntExact(weight.cols());
    int elements = Math.multiplyExact(slabs.rowsPerSlab(), cols);
    byte[] weightBytes = new byte[Math.multiplyExact(elements, type.bytes())];
    byte[] packedBytes = new byte[elements / 2];
    byte[] scaleBytes = new byte[elements / Nvfp4.BLOCK];
    FloatBuffer decoded = FloatBuffer.allocate(elements);
    Requantization again = layer.sampled() ? requantization(layer, type, globalScale, slabs) : null;
    ScaleScan scan = new ScaleScan(layer.scales());
    float amax = 0;
    double squares = 0;
    double errors = 0;
    for (long row = 0; row < slabs.rows(); row += slabs.rowsPerSlab()) {
      int rows = slabs.rowsFrom(row);
      int count = rows * cols;
      ByteBuffer weights = source.read(weight, row * cols * type.bytes(), count * type.bytes(), weightBytes);
      ByteBuffer packed = quantized.read(layer.packed(), row * cols / 2, count / 2, packedBytes);
      ByteBuffer scales =
          quantized.read(layer.scales(), row * cols / Nvfp4.BLOCK, count / Nvfp4.BLOCK, scaleBytes);
      amax = Math.max(amax, amax(weight, type, weights, row));
      scan.add(scales, row * cols / Nvfp4.BLOCK);
      Nvfp4.decode(recipe, packed, scales, rows, cols, globalScale, decoded);
      for (int i = 0; i < count; i++) {
        double w = type.load(weights, i * type.bytes());
        double error = w - decoded.get(i);
        squares += w * w;
        errors += error * error;
      }

      if (again != null) {
        again.add(row, rows, weights, packed, scales);
      }
    }

    scan.report(differences);
    if (again != null) {
      again.report(differences);
    }

    return new LayerCheck(layer.module(), globalScale, inputScale, amax, squares, errors, layer.sampled());
  }

  /** The stored scale is kept where the last bit alone differs: that difference is the scale's, not every code's. */
  private Requantization requantization(QuantizedLayer layer, ElementType type, float stored, RowSlabs slabs)
      throws IOException, BadWeight {
    float amax = 0;
    for (LocatedTensor sharer : layer.sharers()) {
      amax = Math.max(amax, amax(sharer));
    }

    float expected = layer.scheme().recipe().globalScale(amax, type);
    float scale = GlobalScaleCheck.isNear(stored, expected) ? stored : expected;
    return new Requantization(layer, amax, scale, slabs.rowsPerSlab());
  }

  private float amax(LocatedTensor weight) throws IOException, BadWeight {
    ElementType type = ElementType.of(weight.dtype().name());
    RowSlabs slabs = new RowSlabs(weight);
    int rowBytes = Math.toIntExact(weight.cols() * type.bytes());
    byte[] bytes = new byte[Math.multiplyExact(slabs.rowsPerSlab(), rowBytes)];
    float amax = 0;
    for (long row = 0; row < slabs.rows(); row += slabs.rowsPerSlab()) {
      ByteBuffer weights = source.read(weight, row * rowBytes, slabs.rowsFrom(row) * rowBytes, bytes);
      amax = Math.max(amax, amax(weight, type, weights, row));
    }

    return amax;
  }

  private static float amax(LocatedTensor weight, ElementType type, ByteBuffer slab, long row) throws BadWeight {
    try {
      return Nvfp4.amax(type, slab);
    } catch (NonFiniteException e) {
      long element = row * weight.cols() + e.index();
      throw new BadWeight(String.format(
          "Source tensor %s (%s) has %s at [%d, %d], which NVFP4 cannot stand for",
          weight.name(), weight.file(), e.value(), element / weight.cols(), element % weight.cols()));
    }
  }

  /** A source weight is no number. */
  private static final class BadWeight extends Exception {
    private static final long serialVersionUID = 1L;

    BadWeight(String message) {
      super(message);
    }
  }
}
