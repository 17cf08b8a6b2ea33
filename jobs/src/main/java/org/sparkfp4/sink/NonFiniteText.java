package org.sparkfp4.sink;

import java.util.Locale;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.formats.WeightScheme;

/** What is wrong with a source weight that is not finite, for the user: tensor, index, file, remedy. */
final class NonFiniteText {
  private static final String REMEDY =
      "NVFP4 has no code for it. Repair the tensor in the source and start again with --overwrite";

  private NonFiniteText() {}

  /**
   * The text.
   *
   * @param scale the weight's scales, or null
   * @param element row-major index of the weight that is not finite
   * @param value what it is, once it is multiplied by its scale
   * @param input the source's folder
   */
  static String of(
      LocatedTensor weight, LocatedTensor scale, SourceScheme scheme, long element, float value, String input) {
    long row = element / weight.cols();
    long col = element % weight.cols();
    if (scale == null) {
      return String.format(
          Locale.ROOT, "Invalid weight in %s: element [%d, %d] is %s, in file %s/%s; %s",
          weight.name(), row, col, value, input, weight.file(), REMEDY);
    }

    WeightScheme stored = scheme.stored();
    long scaleRow = stored.blockRows() == 0 ? 0 : row / stored.blockRows();
    long scaleCol = stored.blockCols() == 0 ? 0 : col / stored.blockCols();
    if (stored.codes() == CodeType.E4M3) {
      return String.format(
          Locale.ROOT, "Invalid weight in %s: element [%d, %d] in file %s/%s, multiplied by its scale, element "
              + "[%d, %d] of %s in file %s/%s, is %s; %s",
          weight.name(), row, col, input, weight.file(), scaleRow, scaleCol, scale.name(), input, scale.file(), value,
          REMEDY);
    }

    // codes of four bits are finite, all of them
    return String.format(
        Locale.ROOT, "Invalid scale in %s: element [%d, %d] makes weights %s, in file %s/%s, first element [%d, %d] of "
            + "%s; %s",
        scale.name(), scaleRow, scaleCol, value, input, scale.file(), row, col, weight.name(), REMEDY);
  }
}
