package org.sparkfp4.functions;

import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoder;
import org.apache.spark.sql.catalyst.encoders.AgnosticEncoders;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Map;

/**
 * What can be told of a call's arguments when a query is analysed: their types, and literals, which are the same of every
 * row. It is told then, in the line that Spark has for a mistake in a query, and not by a task that fails.
 */
final class ArgumentChecks {
  /** Spark's, of 4.0 and later: "Failed preparing of the function <funcName> for call." */
  private static final String CONDITION = "FAILED_FUNCTION_CALL";

  private ArgumentChecks() {}

  /** Spark would cut fractions off, of columns and of numbers in strings too. It resolves arguments before functions. */
  static void requireWhole(String name, List<Expression> arguments, List<AgnosticEncoder<?>> encoders) {
    for (int i = 0; i < arguments.size(); i++) {
      boolean isWhole = encoders.get(i) == AgnosticEncoders.BoxedLongEncoder$.MODULE$
          || encoders.get(i) == AgnosticEncoders.BoxedIntEncoder$.MODULE$;
      Expression argument = arguments.get(i);
      if (isWhole && argument.resolved() && !isWholeOrNull(argument.dataType())) {
        throw new IllegalArgumentException("Invalid argument of " + name + ": " + argument.sql() + " is "
            + argument.dataType().sql() + ", must be an integer; CAST(… AS BIGINT) makes one of it");
      }
    }
  }

  private static boolean isWholeOrNull(DataType type) {
    return type instanceof IntegralType || type instanceof NullType;
  }

  /** Holds an argument that is a literal to what a function takes: {@code check} throws what it would throw of a row. */
  static void text(Expression argument, Consumer<String> check) {
    if (argument instanceof Literal literal && literal.value() instanceof UTF8String text) {
      check.accept(text.toString());
    }
  }

  /** The same of an integer. */
  static void whole(Expression argument, LongConsumer check) {
    if (argument instanceof Literal literal && literal.value() instanceof Number number
        && literal.dataType() instanceof IntegralType) {
      check.accept(number.longValue());
    }
  }

  /** A mistake in a call, as Spark's own in a query, which get their place in it; PySpark asks each for its condition. */
  static AnalysisException refusal(String function, IllegalArgumentException mistake) {
    return new AnalysisException(mistake.getMessage(), Option.empty(), Option.empty(), new Some<>(mistake),
        new Some<>(CONDITION), new Map.Map1<>("funcName", function), new QueryContext[0]);
  }
}
