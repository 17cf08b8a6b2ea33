package org.sparkfp4.columnar;

import java.util.List;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The projected batches of one task. As with Spark's own readers, a batch is valid until the next is asked for; a
 * consumer that closes it earlier does no harm.
 */
final class ArrowProjectIterator extends AbstractIterator<ColumnarBatch> {
  private final Iterator<ColumnarBatch> input;
  private final List<ColumnReader> readers;
  private final SQLMetric rows;
  private final SQLMetric batches;

  ArrowProjectIterator(Iterator<ColumnarBatch> input, List<ColumnReader> readers, SQLMetric rows, SQLMetric batches) {
    this.input = input;
    this.readers = readers;
    this.rows = rows;
    this.batches = batches;
  }

  @Override
  public boolean hasNext() {
    boolean more = input.hasNext();
    if (!more) {
      release();
    }

    return more;
  }

  @Override
  public ColumnarBatch next() {
    release();
    ColumnarBatch batch = input.next();
    ColumnVector[] columns = readers.stream().map(reader -> reader.column(batch)).toArray(ColumnVector[]::new);
    rows.add(batch.numRows());
    batches.add(1);
    return new ColumnarBatch(columns, batch.numRows());
  }

  /** All results of the last batch before any of the next, so that their memory can serve again. */
  private void release() {
    readers.forEach(ColumnReader::release);
  }
}
