package org.sparkfp4.functions;

import java.io.Serializable;
import org.apache.arrow.memory.BufferAllocator;

/**
 * A function that can run on whole columns. A {@code UDFn} that implements it too, registered as the object itself (not
 * through a lambda around it), is run on Arrow batches wherever the columnar rule finds it, and row by row elsewhere.
 */
public interface ArrowUdf extends Serializable {
  /**
   * Called once a task for every use of the function in a query.
   *
   * @param allocator the task's; whatever is taken from it must be given back before the task ends
   */
  ArrowEvaluator open(BufferAllocator allocator);
}
