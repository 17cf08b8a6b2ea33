package org.sparkfp4.columnar;

import java.lang.invoke.SerializedLambda;
import java.lang.reflect.Method;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.sparkfp4.functions.ArrowUdf;

/**
 * The object that a query's function was registered as. Spark wraps a Java {@code UDFn} into a Scala lambda of its own,
 * whose only captured argument is that object; the lambda's serialized form shows it.
 */
final class CapturedUdf {
  private CapturedUdf() {}

  /** The function, if it can run on columns. */
  static Optional<ArrowUdf> of(ScalaUDF expression) {
    Object function = expression.function();
    try {
      Method writeReplace = function.getClass().getDeclaredMethod("writeReplace");
      writeReplace.setAccessible(true);
      if (writeReplace.invoke(function) instanceof SerializedLambda lambda
          && lambda.getCapturedArgCount() == 1
          && lambda.getCapturedArg(0) instanceof ArrowUdf udf) {
        return Optional.of(udf);
      }

      return Optional.empty();
    } catch (ReflectiveOperationException | RuntimeException e) {
      // No serializable lambda, so none of Spark's wrappers: somebody else's function.
      return Optional.empty();
    }
  }
}
