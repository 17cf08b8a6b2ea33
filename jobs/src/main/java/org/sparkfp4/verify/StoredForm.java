package org.sparkfp4.verify;

import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.WeightScheme;

/**
 * How weights are stored in the source's precision.
 *
 * @param codes the codes' type
 * @param blockRows rows that share a scale; 0 for all
 * @param blockCols columns that share a scale; 0 for all
 * @param staticActivations whether a stored scale quantizes their activations
 */
record StoredForm(CodeType codes, long blockRows, long blockCols, boolean staticActivations) {
  static StoredForm of(WeightScheme scheme, boolean staticActivations) {
    return new StoredForm(scheme.codes(), scheme.blockRows(), scheme.blockCols(), staticActivations);
  }

  @Override
  public String toString() {
    return codes + " " + size(blockRows) + "x" + size(blockCols) + (staticActivations ? " with an input_scale" : "");
  }

  private static String size(long side) {
    return side == 0 ? "*" : Long.toString(side);
  }
}
