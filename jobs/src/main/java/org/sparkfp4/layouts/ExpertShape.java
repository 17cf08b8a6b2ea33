package org.sparkfp4.layouts;

import java.io.Serializable;

/**
 * The sizes of a layer's experts.
 *
 * @param gated whether they have a gate beside up
 * @param experts how many there are
 * @param hidden H, the model's width: columns of gate and up, rows of down
 * @param intermediate I, an expert's width: rows of gate and up, columns of down
 */
public record ExpertShape(boolean gated, int experts, long hidden, long intermediate) implements Serializable {
  /** Matrices that a product multiplies by: gate and up for FC1, or one. */
  public int members(Fc fc) {
    return fc == Fc.FC1 && gated ? 2 : 1;
  }

  /** Rows of each of them. */
  public long rows(Fc fc) {
    return fc == Fc.FC1 ? intermediate : hidden;
  }

  /** Columns of each of them. */
  public long cols(Fc fc) {
    return fc == Fc.FC1 ? hidden : intermediate;
  }

  /** The number of matrices of an expert. */
  public int projections() {
    return gated ? 3 : 2;
  }

  /** Place of a product's member among gate, up and down. */
  public int projection(Fc fc, int member) {
    return fc == Fc.FC1 ? member : projections() - 1;
  }
}
