package org.sparkfp4.functions;

import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.internal.ToScalaUDF;
import org.sparkfp4.formats.ElementType;

/** The functions that look into tensors, by their SQL names: their values, figures of them, what NVFP4 would lose. */
final class FigureSqlFunctions {
  private static final AgnosticEncoder<?> BINARY = AgnosticEncoders.BinaryEncoder$.MODULE$;
  private static final AgnosticEncoder<?> STRING = AgnosticEncoders.StringEncoder$.MODULE$;
  private static final AgnosticEncoder<?> LONG = AgnosticEncoders.BoxedLongEncoder$.MODULE$;

  private FigureSqlFunctions() {}

  static void inject(SparkSessionExtensions extensions) {
    ExpressionInfo error = errorInfo();
    SqlFunctions.inject(extensions, error, arguments -> {
      List<Expression> given = SqlFunctions.checked(error.getName(), arguments, 3, 4);
      SqlFunctions.requireTensor(given.get(1), given.get(2));
      Nvfp4Error function = new Nvfp4Error(SqlFunctions.search(given), SqlFunctions.kernels());
      return SqlFunctions.expression(error.getName(), ToScalaUDF.apply(function), Nvfp4Error.RETURN_TYPE,
          given.subList(0, 3), List.of(BINARY, STRING, LONG));
    });
    ExpressionInfo stats = statsInfo();
    SqlFunctions.inject(extensions, stats, arguments -> {
      List<Expression> given = SqlFunctions.checked(stats.getName(), arguments, 2);
      ArgumentChecks.text(given.get(1), ElementType::of);
      return SqlFunctions.expression(stats.getName(), ToScalaUDF.apply(new TensorStats()), TensorStats.RETURN_TYPE,
          given, List.of(BINARY, STRING));
    });
    ExpressionInfo values = valuesInfo();
    SqlFunctions.inject(extensions, values, arguments -> {
      List<Expression> given = SqlFunctions.checked(values.getName(), arguments, 2);
      ArgumentChecks.text(given.get(1), TensorValues::decoder);
      return SqlFunctions.expression(values.getName(), ToScalaUDF.apply(new TensorValues()), TensorValues.RETURN_TYPE,
          given, List.of(BINARY, STRING));
    });
  }

  private static ExpressionInfo errorInfo() {
    return SqlFunctions.info(Nvfp4Error.class, "nvfp4_error",
        "_FUNC_(payload, dtype, cols[, search]) - Returns what NVFP4, with ModelOpt's arithmetic, would lose of a weight "
            + "tensor: struct<sum_squares, squared_error, relative_error, sqnr>.",
        """
            * payload, dtype, cols, search - as nvfp4_quantize takes them
            """,
        """
            > SELECT name, _FUNC_(payload, dtype, cols).relative_error FROM tensors ORDER BY 2 DESC;
            > SELECT sqrt(sum(e.squared_error) / sum(e.sum_squares)) FROM
                (SELECT _FUNC_(payload, dtype, cols, 'sweep') AS e FROM tensors);
            """,
        """
            relative_error is the root of squared_error / sum_squares, and 0 of zeros; sqnr is in decibels, and null
            where nothing is lost. A null payload gives null; a NaN or infinite weight is an error.
            """);
  }

  private static ExpressionInfo statsInfo() {
    return SqlFunctions.info(TensorStats.class, "tensor_stats",
        "_FUNC_(payload, dtype) - Returns what the values of a tensor are like: struct<elements, zeros, nans, "
            + "infinities, min, max, amax, mean, stddev, kurtosis>.",
        """
            * payload - BINARY: the tensor's elements, little-endian
            * dtype - STRING: BF16, F16 or F32
            """,
        "> SELECT name, _FUNC_(payload, dtype) AS s FROM tensors WHERE dtype IN ('BF16', 'F16', 'F32');",
        """
            All but the counts is of the finite values, and null where there are none. stddev is that of a population;
            kurtosis is 3 of a normal distribution, more where there are outliers. A null payload gives null.
            """);
  }

  private static ExpressionInfo valuesInfo() {
    return SqlFunctions.info(TensorValues.class, "tensor_values",
        "_FUNC_(payload, dtype) - Returns the values of a tensor as an ARRAY<FLOAT>.",
        """
            * payload - BINARY: the tensor's elements, little-endian
            * dtype - STRING: BF16, F16, F32, F8_E4M3 or F8_E8M0
            """,
        "> SELECT name, _FUNC_(payload, dtype)[0] AS scale FROM tensors WHERE name LIKE '%.weight_scale_2';",
        "Each value is exact. A null payload gives null.");
  }
}
