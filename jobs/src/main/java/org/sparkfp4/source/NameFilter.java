package org.sparkfp4.source;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** The filters on names that a scan answers from headers: {@code =}, {@code IN} and a prefix. */
final class NameFilter implements java.util.function.Predicate<String> {
  private final List<Predicate> pushed = new ArrayList<>();
  private final List<java.util.function.Predicate<String>> tests = new ArrayList<>();

  /** Takes a filter on if it is one of these; it need not be evaluated again then. */
  boolean push(Predicate predicate) {
    java.util.function.Predicate<String> test = test(predicate);
    if (test == null) {
      return false;
    }

    pushed.add(predicate);
    tests.add(test);
    return true;
  }

  Predicate[] pushed() {
    return pushed.toArray(Predicate[]::new);
  }

  @Override
  public boolean test(String name) {
    return tests.stream().allMatch(test -> test.test(name));
  }

  @Override
  public String toString() {
    return pushed.toString();
  }

  private static java.util.function.Predicate<String> test(Predicate predicate) {
    Expression[] children = predicate.children();
    if (children.length == 0 || !isName(children[0])) {
      return null;
    }

    List<Expression> operands = Arrays.asList(children).subList(1, children.length);
    if (!operands.stream().allMatch(Literal.class::isInstance)) {
      return null;
    }

    // null equals nothing
    Set<String> values = operands.stream()
        .map(operand -> ((Literal<?>) operand).value())
        .filter(Objects::nonNull)
        .map(Object::toString)
        .collect(Collectors.toSet());
    return switch (predicate.name()) {
      case "=", "IN" -> values::contains;
      case "STARTS_WITH" -> name -> values.stream().anyMatch(name::startsWith);
      case "ENDS_WITH" -> name -> values.stream().anyMatch(name::endsWith);
      default -> null;
    };
  }

  private static boolean isName(Expression expression) {
    return expression instanceof NamedReference reference
        && reference.fieldNames().length == 1
        && reference.fieldNames()[0].equalsIgnoreCase(SourceSchema.NAME);
  }
}
