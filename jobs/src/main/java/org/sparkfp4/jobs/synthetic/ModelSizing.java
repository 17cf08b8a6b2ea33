package org.sparkfp4.jobs.synthetic;

import org.sparkfp4.safetensors.DType;

/**
 * Finds a shape of a family for a number of bytes: the family's own widths and as many experts as fit, with narrower
 * widths only where two layers of the real ones would be too much.
 */
public final class ModelSizing {
  private static final double CLOSE_ENOUGH = 0.02;
  private static final int NARROWEST = 32;

  private ModelSizing() {}

  /**
   * A shape whose tensors take {@code bytes}, within 2 %.
   *
   * @throws IllegalArgumentException when the family has no model as small as that
   */
  public static ModelShape fit(SyntheticFamily family, long bytes, DType dtype) {
    for (int divisor = 1; divisor <= NARROWEST; divisor *= 2) {
      ModelShape widths = family.shape().narrowed(divisor);
      ModelShape fit = fitLayersAndExperts(family, widths, bytes, dtype);
      if (fit != null) {
        return fit;
      }
    }

    throw new IllegalArgumentException(
        "Invalid size: " + bytes + " bytes (the smallest " + family + " model has " + smallest(family, dtype) + ")");
  }

  private static ModelShape fitLayersAndExperts(SyntheticFamily family, ModelShape widths, long bytes, DType dtype) {
    int fewestLayers = fewestLayers(family);
    Growth growth = Growth.of(family, widths, dtype, fewestLayers);
    for (int experts = widths.experts(); experts >= fewestExperts(family); experts--) {
      int layers = (int) Math.min(100_000, growth.layersFor(bytes, experts));
      ModelShape fit = layers < fewestLayers ? null : widths.withLayersAndExperts(layers, experts);
      // the estimate first, as it costs nothing; an odd number of layers that alternate is not quite as it says
      if (fit != null && isClose(growth.at(layers, experts), bytes) && isClose(bytes(family, fit, dtype), bytes)) {
        return fit;
      }
    }

    return null;
  }

  private static boolean isClose(long actual, long wanted) {
    return Math.abs(actual - wanted) <= CLOSE_ENOUGH * wanted;
  }

  private static int fewestLayers(SyntheticFamily family) {
    return family.denseLayers() + 2;
  }

  private static int fewestExperts(SyntheticFamily family) {
    return Math.min(8, family.shape().experts() / 2);
  }

  private static long smallest(SyntheticFamily family, DType dtype) {
    ModelShape widths = family.shape().narrowed(NARROWEST);
    return bytes(family, widths.withLayersAndExperts(fewestLayers(family), fewestExperts(family)), dtype);
  }

  private static long bytes(SyntheticFamily family, ModelShape shape, DType dtype) {
    return SyntheticTensors.of(family, shape, dtype).stream().mapToLong(SyntheticTensor::bytes).sum();
  }

  /** Bytes of a model as a function of layers and experts, bilinear: {@code base + layers × layer}, each by experts. */
  private record Growth(long base, long baseExpert, long layer, long layerExpert) {
    static Growth of(SyntheticFamily family, ModelShape widths, DType dtype, int layers) {
      long few = bytes(family, widths.withLayersAndExperts(layers, 1), dtype);
      long wide = bytes(family, widths.withLayersAndExperts(layers, 2), dtype);
      // two layers, as those of hybrid models alternate
      long deep = bytes(family, widths.withLayersAndExperts(layers + 2, 1), dtype);
      long both = bytes(family, widths.withLayersAndExperts(layers + 2, 2), dtype);
      long layerExpert = (both - deep - (wide - few)) / 2;
      long layer = (deep - few) / 2 - layerExpert;
      long baseExpert = wide - few - layers * layerExpert;
      return new Growth(few - layers * (layer + layerExpert) - baseExpert, baseExpert, layer, layerExpert);
    }

    long at(long layers, long experts) {
      return base + experts * baseExpert + layers * (layer + experts * layerExpert);
    }

    long layersFor(long bytes, long experts) {
      return Math.round((bytes - base - experts * baseExpert) / (double) (layer + experts * layerExpert));
    }
  }
}
