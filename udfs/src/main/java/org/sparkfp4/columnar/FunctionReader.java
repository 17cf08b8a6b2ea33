package org.sparkfp4.columnar;

import java.util.List;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.sparkfp4.functions.ArrowEvaluator;

/** Evaluates a function on each batch; owns its last result, as readers of Spark's sources own their batches. */
final class FunctionReader implements ColumnReader {
  private final FunctionColumn function;
  private final List<ColumnReader> arguments;
  private final ArrowEvaluator evaluator;
  private ColumnVector result;

  FunctionReader(FunctionColumn function, List<ColumnReader> arguments, ArrowEvaluator evaluator) {
    this.function = function;
    this.arguments = arguments;
    this.evaluator = evaluator;
  }

  @Override
  public ColumnVector column(ColumnarBatch batch) {
    release();
    ColumnVector[] columns = arguments.stream().map(argument -> argument.column(batch)).toArray(ColumnVector[]::new);
    long start = System.nanoTime();
    try {
      result = evaluator.evaluate(batch.numRows(), columns);
    } catch (RuntimeException e) {
      throw new FunctionException(
          "Cannot evaluate " + function.name() + " on " + BatchText.of(batch, function.inputNames()) + ": "
              + e.getMessage(), e);
    }

    function.metrics().add(System.nanoTime() - start, columns, result);
    return result;
  }

  @Override
  public void release() {
    if (result != null) {
      result.close();
      result = null;
    }
  }

  @Override
  public void close() {
    release();
    evaluator.close();
  }
}
