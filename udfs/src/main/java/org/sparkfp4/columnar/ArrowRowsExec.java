package org.sparkfp4.columnar;

import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/** Columns to rows for a writer: each row is the same {@link ArrowRow}, moved on, over the batch's own memory. */
public final class ArrowRowsExec extends SparkPlan {
  private static final String ROWS = "numOutputRows";

  private final SparkPlan child;
  private transient Map<String, SQLMetric> metrics;

  /** The argument is the product's element: Spark makes changed copies of a plan through this constructor. */
  public ArrowRowsExec(SparkPlan child) {
    this.child = child;
  }

  @Override
  public Seq<Attribute> output() {
    return child.output();
  }

  @Override
  public Partitioning outputPartitioning() {
    return child.outputPartitioning();
  }

  @Override
  public Seq<SortOrder> outputOrdering() {
    return child.outputOrdering();
  }

  @Override
  public synchronized Map<String, SQLMetric> metrics() {
    if (metrics == null) {
      List<Tuple2<String, SQLMetric>> created =
          List.of(new Tuple2<>(ROWS, SQLMetrics.createMetric(sparkContext(), "number of output rows")));
      metrics = Map$.MODULE$.from(CollectionConverters.asScala(created));
    }

    return metrics;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return child.executeColumnar().mapPartitionsWithEvaluator(
        new ArrowRowsFactory(longMetric(ROWS)), ClassTag$.MODULE$.apply(InternalRow.class));
  }

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> newChildren) {
    return new ArrowRowsExec(newChildren.head());
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    if (index != 0) {
      throw new IndexOutOfBoundsException(index);
    }

    return child;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof ArrowRowsExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ArrowRowsExec that && child.equals(that.child);
  }

  @Override
  public int hashCode() {
    return 31 * child.hashCode();
  }
}
