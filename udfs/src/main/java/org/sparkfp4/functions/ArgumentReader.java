package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The arguments of a batch of Spark's columns; payloads become segments, where they lie if that is native memory. */
final class ArgumentReader implements UnitArguments {
  private static final int MEMBERS = 3;

  /** Ordinal of the scheme, behind the members' payloads and their scales'. */
  private static final int SCHEME = 2 * MEMBERS;

  private final ColumnVector[] arguments;
  private final NativeScratch scratch;

  /**
   * @param arguments the members' payloads, then their scales, the scheme, and the function's own
   */
  ArgumentReader(ColumnVector[] arguments, NativeScratch scratch) {
    this.arguments = arguments;
    this.scratch = scratch;
  }

  @Override
  public Segments segments(int row) {
    if (arguments[0].isNullAt(row)) {
      return null;
    }

    Segments segments = new Segments(Payload.text(arguments[SCHEME], row));
    for (int member = 0; member < MEMBERS; member++) {
      if (!arguments[member].isNullAt(row)) {
        add(arguments[member], row, member, segments::add);
      }

      if (!arguments[MEMBERS + member].isNullAt(row)) {
        add(arguments[MEMBERS + member], row, member, segments::addScales);
      }
    }

    return segments;
  }

  @Override
  public Long longAt(int argument, int row) {
    return arguments[argument].isNullAt(row) ? null : arguments[argument].getLong(row);
  }

  @Override
  public Float floatAt(int argument, int row) {
    return arguments[argument].isNullAt(row) ? null : arguments[argument].getFloat(row);
  }

  @Override
  public ImportanceBytes importanceAt(int argument, int row) {
    if (arguments[argument].isNullAt(row)) {
      return null;
    }

    ImportanceBytes[] found = new ImportanceBytes[1];
    add(arguments[argument], row, 0, (member, address, bytes) -> found[0] = new ImportanceBytes(address, bytes));
    return found[0];
  }

  private void add(ColumnVector payload, int row, int member, Taker taker) {
    ArrowBuf bytes = scratch.view(payload, row);
    taker.take(member, bytes.memoryAddress(), bytes.capacity());
  }

  /** What becomes of a payload. */
  private interface Taker {
    void take(int member, long address, long bytes);
  }
}
