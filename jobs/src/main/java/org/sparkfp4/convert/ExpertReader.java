package org.sparkfp4.convert;

import java.io.IOException;
import org.sparkfp4.layouts.Fc;

/** Reads a layer's experts one at a time, whatever layout they are stored in. Matrices are row-major, gate before up. */
interface ExpertReader {
  /** E2M1 codes of an expert's matrices, {@code [rows, K/2]} each. */
  byte[][] codes(Fc fc, int expert) throws IOException;

  /**
   * E4M3 block scales of an expert's matrices, {@code [rows, K/16]} each.
   *
   * @throws org.sparkfp4.output.BadSourceException if one is negative or NaN
   */
  byte[][] scales(Fc fc, int expert) throws IOException;

  /**
   * The global scale of an expert's projection.
   *
   * @throws org.sparkfp4.output.BadSourceException if it is not positive and finite
   */
  GlobalScale global(int expert, int projection) throws IOException;

  /** The same of its activations; null where there is none. */
  GlobalScale input(int expert, int projection) throws IOException;

  /** The reader of a layer. */
  static ExpertReader of(ExpertLayer layer, SourceBytes source) {
    return layer.stored() instanceof StoredExperts.Stack stack
        ? new StackReader(layer, stack, source)
        : new ModuleReader(layer, (StoredExperts.Modules) layer.stored(), source);
  }
}
