package org.sparkfp4.layouts;

import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.formats.CodeLayout;

/**
 * How an expert's matrices of one product lie in a runtime's memory. Matrices come and go row-major, gate before up.
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

  /** An expert's codes as the runtime has them. */
  public byte[] arrangeCodes(byte[][] members) {
    byte[] out = new byte[Math.toIntExact(codeBytes())];
    codes.arrange(shape, views(members), Bytes.of(out));
    return out;
  }

  /** An expert's block scales as the runtime has them. */
  public byte[] arrangeScales(byte[][] members) {
    byte[] out = new byte[Math.toIntExact(scaleBytes())];
    scales.arrange(shape, views(members), 1, Bytes.of(out));
    return out;
  }

  /** The codes of each matrix. */
  public byte[][] restoreCodes(byte[] arranged) {
    byte[][] members = new byte[shape.members()][Math.toIntExact(shape.memberCodes())];
    codes.restore(shape, Bytes.of(arranged), views(members));
    return members;
  }

  /** The block scales of each matrix. */
  public byte[][] restoreScales(byte[] arranged) {
    byte[][] members = new byte[shape.members()][Math.toIntExact(shape.memberScales())];
    scales.restore(shape, Bytes.of(arranged), 1, views(members));
    return members;
  }

  /** In the runtime's order. */
  private Bytes[] views(byte[][] members) {
    Bytes[] views = new Bytes[members.length];
    for (int m = 0; m < members.length; m++) {
      views[m] = Bytes.of(members[gateFirst ? m : members.length - 1 - m]);
    }

    return views;
  }
}
