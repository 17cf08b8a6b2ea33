package org.sparkfp4.columnar;

import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/** The rows of one task's batches; the batch of a row stays valid until the first row of the next is asked for. */
final class ArrowRowsIterator extends AbstractIterator<InternalRow> {
  private final Iterator<ColumnarBatch> batches;
  private final SQLMetric rows;
  private ArrowRow row;
  private int rowCount;
  private int next;

  ArrowRowsIterator(Iterator<ColumnarBatch> batches, SQLMetric rows) {
    this.batches = batches;
    this.rows = rows;
  }

  @Override
  public boolean hasNext() {
    while (next == rowCount && batches.hasNext()) {
      ColumnarBatch batch = batches.next();
      row = new ArrowRow(batch);
      rowCount = batch.numRows();
      next = 0;
      rows.add(rowCount);
    }

    return next < rowCount;
  }

  @Override
  public InternalRow next() {
    if (!hasNext()) {
      throw new NoSuchElementException("Cannot read a row: no batch is left");
    }

    row.moveTo(next);
    next++;
    return row;
  }
}
