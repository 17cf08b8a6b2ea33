package org.sparkfp4.columnar;

import java.util.List;
import java.util.Objects;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.physical.Partitioning;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;

/** A projection on columns: input columns are handed on as they are, functions run on whole batches. */
public final class ArrowProjectExec extends SparkPlan {
  private static final String ROWS = "numOutputRows";
  private static final String BATCHES = "numOutputBatches";
  private static final String NANOS = "functionTime";
  private static final String ARGUMENT_BYTES = "argumentBytes";
  private static final String RESULT_BYTES = "resultBytes";

  private final Seq<NamedExpression> projectList;
  private final SparkPlan child;
  private transient Map<String, SQLMetric> metrics;

  /** The arguments are the product's elements: Spark makes changed copies of a plan through this constructor. */
  public ArrowProjectExec(Seq<NamedExpression> projectList, SparkPlan child) {
    this.projectList = projectList;
    this.child = child;
  }

  @Override
  public Seq<Attribute> output() {
    List<Attribute> attributes =
        CollectionConverters.asJava(projectList).stream().map(NamedExpression::toAttribute).toList();
    return CollectionConverters.asScala(attributes).toSeq();
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
  public boolean supportsColumnar() {
    return true;
  }

  @Override
  public synchronized Map<String, SQLMetric> metrics() {
    if (metrics == null) {
      List<Tuple2<String, SQLMetric>> created = List.of(
          new Tuple2<>(ROWS, SQLMetrics.createMetric(sparkContext(), "number of output rows")),
          new Tuple2<>(BATCHES, SQLMetrics.createMetric(sparkContext(), "number of output batches")),
          new Tuple2<>(NANOS, SQLMetrics.createNanoTimingMetric(sparkContext(), "time in functions", -1)),
          new Tuple2<>(ARGUMENT_BYTES, SQLMetrics.createSizeMetric(sparkContext(), "size of functions' arguments", -1)),
          new Tuple2<>(RESULT_BYTES, SQLMetrics.createSizeMetric(sparkContext(), "size of functions' results", -1)));
      metrics = Map$.MODULE$.from(CollectionConverters.asScala(created));
    }

    return metrics;
  }

  @Override
  public RDD<ColumnarBatch> doExecuteColumnar() {
    FunctionMetrics functions =
        new FunctionMetrics(longMetric(NANOS), longMetric(ARGUMENT_BYTES), longMetric(RESULT_BYTES));
    List<ColumnSource> sources = Projection.compile(projectList, child.output(), functions)
        .orElseThrow(() -> new IllegalStateException("Cannot run on columns: " + projectList.mkString(", ")));
    return child.executeColumnar().mapPartitionsWithEvaluator(
        new ArrowProjectFactory(sources, longMetric(ROWS), longMetric(BATCHES)),
        ClassTag$.MODULE$.apply(ColumnarBatch.class));
  }

  @Override
  public RDD<InternalRow> doExecute() {
    throw new UnsupportedOperationException("Cannot run " + nodeName() + " row by row: it gives columns");
  }

  @Override
  public Seq<SparkPlan> children() {
    return CollectionConverters.asScala(List.of(child)).toSeq();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> newChildren) {
    return new ArrowProjectExec(projectList, newChildren.head());
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return switch (index) {
      case 0 -> projectList;
      case 1 -> child;
      default -> throw new IndexOutOfBoundsException(index);
    };
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof ArrowProjectExec;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ArrowProjectExec that && projectList.equals(that.projectList) && child.equals(that.child);
  }

  @Override
  public int hashCode() {
    return Objects.hash(projectList, child);
  }
}
