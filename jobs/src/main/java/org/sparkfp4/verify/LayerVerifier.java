package org.sparkfp4.verify;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.ScaleSearch;

/** Decodes a layer and holds it against its source, in memory that does not grow with the layer. */
final class LayerVerifier {
  private final TensorReader sourceReader;
  private final TensorReader quantized;
  private final ScaleClaim claim;
  private final Differences differences;
  private final CodeCounts counts;

  /** {@code counts} takes the codes and scales of all layers. */
  LayerVerifier(
      TensorReader source, TensorReader quantized, ScaleClaim claim, Differences differences, CodeCounts counts) {
    this.sourceReader = source;
    this.quantized = quantized;
    this.claim = claim;
    this.differences = differences;
    this.counts = counts;
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
    } catch (BadWeightException bad) {
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

  private LayerCheck verify(QuantizedLayer layer, float globalScale, float inputScale)
      throws IOException, BadWeightException {
    SourceRows source = new SourceRows(sourceReader, layer.source());
    int cols = source.cols();
    int elements = Math.multiplyExact(source.rowsPerSlab(), cols);
    byte[] packedBytes = new byte[elements / 2];
    byte[] scaleBytes = new byte[elements / Nvfp4.BLOCK];
    Requantization again = layer.sampled() ? requantization(layer, globalScale, source) : null;
    ScaleScan scan = new ScaleScan(layer.scales());
    AccuracyScan accuracy = new AccuracyScan(
        layer.scheme().recipe(), globalScale, source.rows(), cols, source.rowsPerSlab(), counts);
    float amax = 0;
    for (long row = 0; row < source.rows(); row += source.rowsPerSlab()) {
      int rows = source.rowsFrom(row);
      int count = rows * cols;
      ByteBuffer weights = source.read(row);
      ByteBuffer packed = quantized.read(layer.packed(), row * cols / 2, count / 2, packedBytes);
      ByteBuffer scales =
          quantized.read(layer.scales(), row * cols / Nvfp4.BLOCK, count / Nvfp4.BLOCK, scaleBytes);
      amax = Math.max(amax, source.amax(weights, row));
      scan.add(scales, row * cols / Nvfp4.BLOCK);
      accuracy.add(row, rows, source.type(), weights, packed, scales);
      if (again != null) {
        again.add(row, rows, weights, packed, scales);
      }
    }

    scan.report(differences);
    if (again != null) {
      again.report(differences);
    }

    return new LayerCheck(
        layer.module(), globalScale, inputScale, layer.source().scheme(), amax, accuracy.accuracy(), layer.sampled());
  }

  /** The stored scale is kept where the last bit alone differs: that difference is the scale's, not every code's. */
  private Requantization requantization(QuantizedLayer layer, float stored, SourceRows source)
      throws IOException, BadWeightException {
    float amax = 0;
    for (SourceWeight sharer : layer.sharers()) {
      amax = Math.max(amax, amax(sharer));
    }

    ScaleSearch search = claim.search(layer.source(), layer.scheme().recipe(), amax, stored);
    float expected = layer.source().globalScale(layer.scheme().recipe(), search, amax);
    float scale = GlobalScaleCheck.isNear(stored, expected) ? stored : expected;
    return new Requantization(layer, amax, scale, search, claim.extent(search), source);
  }

  private float amax(SourceWeight weight) throws IOException, BadWeightException {
    SourceRows rows = new SourceRows(sourceReader, weight);
    float amax = 0;
    for (long row = 0; row < rows.rows(); row += rows.rowsPerSlab()) {
      amax = Math.max(amax, rows.amax(rows.read(row), row));
    }

    return amax;
  }
}
