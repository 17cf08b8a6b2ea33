package org.sparkfp4.columnar;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.sparkfp4.functions.ArrowUdf;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Turns the expressions of a projection into column sources: input columns, literals, and functions that can run on
 * columns over those two. Nothing else has a columnar form here.
 */
final class Projection {
  private final List<Attribute> input;
  private final FunctionMetrics metrics;

  private Projection(Seq<Attribute> input, FunctionMetrics metrics) {
    this.input = CollectionConverters.asJava(input);
    this.metrics = metrics;
  }

  /** Whether all of it can run on columns and some of it gains by that. */
  static boolean isWorthwhile(Seq<NamedExpression> expressions, Seq<Attribute> input) {
    return compile(expressions, input, null)
        .filter(sources -> sources.stream().anyMatch(source -> source instanceof FunctionColumn))
        .isPresent();
  }

  /**
   * @param metrics take what the functions did
   * @return one source an expression, or nothing if one of them has no columnar form
   */
  static Optional<List<ColumnSource>> compile(
      Seq<NamedExpression> expressions, Seq<Attribute> input, FunctionMetrics metrics) {
    Projection projection = new Projection(input, metrics);
    return projection.all(CollectionConverters.asJava(expressions), true);
  }

  private Optional<List<ColumnSource>> all(List<? extends Object> expressions, boolean functionsAllowed) {
    List<ColumnSource> sources = new ArrayList<>();
    for (Object expression : expressions) {
      Optional<ColumnSource> source = source((Expression) expression, functionsAllowed);
      if (source.isEmpty()) {
        return Optional.empty();
      }

      sources.add(source.get());
    }

    return Optional.of(List.copyOf(sources));
  }

  private Optional<ColumnSource> source(Expression expression, boolean functionsAllowed) {
    if (expression instanceof Alias alias) {
      return source(alias.child(), functionsAllowed);
    }

    if (expression instanceof Attribute attribute) {
      return inputColumn(attribute);
    }

    if (expression instanceof Literal literal && ConstantColumn.supports(literal)) {
      return Optional.of(new ConstantColumn(literal.value(), literal.dataType()));
    }

    if (functionsAllowed && expression instanceof ScalaUDF udf) {
      return function(udf);
    }

    return Optional.empty();
  }

  private Optional<ColumnSource> inputColumn(Attribute attribute) {
    for (int i = 0; i < input.size(); i++) {
      if (input.get(i).exprId().equals(attribute.exprId())) {
        return Optional.of(new InputColumn(i));
      }
    }

    return Optional.empty();
  }

  private Optional<ColumnSource> function(ScalaUDF expression) {
    Optional<ArrowUdf> udf = CapturedUdf.of(expression);
    Optional<List<ColumnSource>> arguments = all(CollectionConverters.asJava(expression.children()), false);
    if (udf.isEmpty() || arguments.isEmpty()) {
      return Optional.empty();
    }

    List<String> names = input.stream().map(Attribute::name).toList();
    return Optional.of(new FunctionColumn(udf.get(), expression.name(), arguments.get(), names, metrics));
  }
}
