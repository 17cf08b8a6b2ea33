package org.sparkfp4.columnar;

import java.io.Serializable;
import org.apache.arrow.memory.BufferAllocator;

/** Where a column of a projected batch comes from; made on the driver, opened in each task. */
interface ColumnSource extends Serializable {
  ColumnReader open(BufferAllocator allocator);
}
