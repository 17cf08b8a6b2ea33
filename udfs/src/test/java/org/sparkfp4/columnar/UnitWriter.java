package org.sparkfp4.columnar;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.functions.QuantizedRow;

/** Takes bytes where they lie if it can, as the writer of shards does. */
final class UnitWriter implements DataWriter<InternalRow> {
  private record Done() implements WriterCommitMessage {}

  private static final int STRUCT = 2;

  private final String run;
  private boolean leak;

  UnitWriter(String run, boolean leak) {
    this.run = run;
    this.leak = leak;
  }

  @Override
  public void write(InternalRow row) {
    long address = 0;
    QuantizedRow value = row.isNullAt(STRUCT) ? null : QuantizedRow.of(row.getStruct(STRUCT, 7));
    if (row instanceof ArrowRow arrow && value != null) {
      ColumnVector struct = arrow.batchColumn(STRUCT);
      ArrowBuf packed = ArrowRow.bytes(struct.getChild(0), arrow.rowId());
      address = packed.memoryAddress();
      value = new QuantizedRow(bytes(packed), bytes(ArrowRow.bytes(struct.getChild(1), arrow.rowId())), value.amax(),
          value.sumSquares(), value.squaredErrors(), value.globalScale(), value.requantized());
      if (leak) {
        packed.getReferenceManager().retain();
        leak = false;
      }
    }

    UnitSink.run(run).add(new UnitSink.Written(row.getInt(0), value, row instanceof ArrowRow, address));
  }

  @Override
  public WriterCommitMessage commit() {
    return new Done();
  }

  @Override
  public void abort() {}

  @Override
  public void close() {}

  private static byte[] bytes(ArrowBuf view) {
    byte[] bytes = new byte[(int) view.capacity()];
    view.getBytes(0, bytes);
    return bytes;
  }
}
