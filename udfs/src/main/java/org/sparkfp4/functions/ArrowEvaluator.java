package org.sparkfp4.functions;

import org.apache.spark.sql.vectorized.ColumnVector;

/** One use of an {@link ArrowUdf} in one task; used by one thread. */
public interface ArrowEvaluator extends AutoCloseable {
  /**
   * The function's value for every row of a batch.
   *
   * @param rows rows of the batch
   * @param arguments one column an argument: an ArrowColumnVector where the source gives one, any other vector where it
   *     does not, a ConstantColumnVector for a literal. They belong to the caller and are valid during the call
   * @return a column of {@code rows} values that belongs to the caller. It is valid until it is closed; its buffers may
   *     then be overwritten by the next call, unless a consumer has retained them
   */
  ColumnVector evaluate(int rows, ColumnVector[] arguments);

  /** Gives back what the evaluator holds; not the results that the caller still has. */
  @Override
  void close();
}
