package org.sparkfp4.convert;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.formats.E4M3;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.Fc;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.RoundedScales;

/**
 * The global scales of a layer whose experts are to have one for gate and up: the larger of the two. Where they differ
 * the block scales of the smaller side become E4M3(scale * (smaller / larger)), in fp32, to nearest even; codes stay.
 */
final class LayerScales {
  /** The E4M3 byte of 2^-6. */
  private static final int SMALLEST_NORMAL = 0x08;

  private final ExpertLayer layer;
  private final List<List<GlobalScale>> stored = new ArrayList<>();
  private final List<List<GlobalScale>> inputs = new ArrayList<>();

  private LayerScales(ExpertLayer layer) {
    this.layer = layer;
  }

  /** Reads the scales of a layer. */
  static LayerScales read(ExpertLayer layer, ExpertReader reader) throws IOException {
    LayerScales scales = new LayerScales(layer);
    for (int p = 0; p < layer.projections().size(); p++) {
      List<GlobalScale> globals = new ArrayList<>();
      List<GlobalScale> inputs = new ArrayList<>();
      for (int e = 0; e < layer.shape().experts(); e++) {
        globals.add(reader.global(e, p));
        if (layer.stored().hasInput(e, p)) {
          inputs.add(reader.input(e, p));
        }
      }

      scales.stored.add(globals);
      scales.inputs.add(inputs);
    }

    return scales;
  }

  /** What an expert's weights of a product are multiplied by. */
  float factor(Fc fc, int expert) {
    return effective(fc == Fc.FC1 ? 0 : layer.projections().size() - 1, expert).multiplier();
  }

  /** The scale that a projection's block scales are under once they are written. */
  private GlobalScale effective(int projection, int expert) {
    GlobalScale own = stored.get(projection).get(expert);
    if (!layer.shape().gated() || projection == layer.projections().size() - 1) {
      return own;
    }

    GlobalScale other = stored.get(1 - projection).get(expert);
    // of two that give one factor each keeps its own bits
    return other.multiplier() > own.multiplier() ? other : own;
  }

  /**
   * Rounds the block scales of a product's matrices in place, where they are not under the factor yet.
   *
   * @return what could not be kept
   */
  RoundedScales round(Fc fc, int expert, byte[][] members) {
    RoundedScales rounded = RoundedScales.NONE;
    for (int m = 0; m < members.length; m++) {
      float own = stored.get(layer.shape().projection(fc, m)).get(expert).multiplier();
      float factor = factor(fc, expert);
      if (own != factor) {
        rounded = rounded.plus(round(members[m], own, factor));
      }
    }

    return rounded;
  }

  /** Products of an E4M3 value and a float are exact in double. */
  private static RoundedScales round(byte[] scales, float own, float factor) {
    float ratio = own / factor;
    byte[] codes = new byte[128];
    boolean[] inexact = new boolean[128];
    for (int code = 0; code < 127; code++) {
      codes[code] = (byte) E4M3.encode(E4M3.decode(code) * ratio);
      inexact[code] = (double) E4M3.decode(codes[code]) * factor != (double) E4M3.decode(code) * own;
    }

    long changed = 0;
    long subnormal = 0;
    long flushed = 0;
    for (int i = 0; i < scales.length; i++) {
      int before = scales[i];
      scales[i] = codes[before];
      changed += inexact[before] ? 1 : 0;
      subnormal += scales[i] > 0 && scales[i] < SMALLEST_NORMAL ? 1 : 0;
      flushed += before > 0 && scales[i] == 0 ? 1 : 0;
    }

    return new RoundedScales(1, scales.length, changed, subnormal, flushed, 0);
  }

  /**
   * Requires factors that a layout has room for.
   *
   * @throws BadSourceException naming one that it has not
   */
  void requireHeldBy(ExpertLayout layout) {
    for (Fc fc : Fc.values()) {
      for (int e = 0; e < layer.shape().experts(); e++) {
        if (!layout.holdsGlobal(factor(fc, e))) {
          throw new BadSourceException("Cannot write " + layer.module(e, layer.shape().projection(fc, 0)) + " in layout "
              + layout.optionName() + ": its global scale " + factor(fc, e)
              + " is zero, infinite or subnormal as the runtime stores it; choose another layout");
        }
      }
    }
  }

  /** What the output's metadata says of the layer. */
  StackDescription describe(ExpertLayout layout, List<String> tensors) {
    ExpertShape shape = layer.shape();
    List<String> globals = new ArrayList<>();
    for (int p = 0; p < layer.projections().size(); p++) {
      List<GlobalScale> scales = new ArrayList<>();
      for (int e = 0; e < shape.experts(); e++) {
        scales.add(effective(p, e));
      }

      globals.add(StackDescription.text(scales));
    }

    return new StackDescription(layout.optionName(), layer.projections(), shape.experts(), shape.hidden(),
        shape.intermediate(), tensors, globals, inputs.stream().map(StackDescription::text).toList());
  }
}
