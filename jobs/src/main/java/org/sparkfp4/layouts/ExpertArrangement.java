package org.sparkfp4.layouts;

import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.CodeLayout;

/**
 * How an expert's matrices of one product lie in a runtime's memory.
 *
 * @param shape rows and columns of each, and where rows go
 * @param codes of the E2M1 codes
 * @param scales of the E4M3 block scales
 * @param gateFirst whether the runtime has gate's rows before up's
 */
public record ExpertArrangement(
    Arrangement shape, CodeLayout codes, BlockScaleLayout scales, boolean gateFirst) {
  /** Rows of the arranged matrix. */
  public long rows() {
    return shape.matrixRows();
  }

  /** Columns of the arranged matrix. */
  public long cols() {
    return shape.paddedK();
  }

  /** Bytes of an expert's codes. */
  public long codeBytes() {
    return codes.bytes(rows(), cols());
  }

  /** Bytes of an expert's block scales. */
  public long scaleBytes() {
    return scales.bytes(rows(), shape.paddedColumns());
  }

  /** The place in the runtime's order of a matrix by its number, gate before up. */
  public int place(int member) {
    return gateFirst ? member : shape.members() - 1 - member;
  }
}
