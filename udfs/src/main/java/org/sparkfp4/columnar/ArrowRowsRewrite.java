package org.sparkfp4.columnar;

import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.v2.AppendDataExec;
import org.apache.spark.sql.execution.datasources.v2.OverwriteByExpressionExec;
import org.apache.spark.sql.execution.datasources.v2.OverwritePartitionsDynamicExec;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Gives a writer rows that lead to the Arrow memory, in place of rows into which all bytes are copied. Only directly
 * under a write: any operator between would be given one row object that changes under it.
 */
final class ArrowRowsRewrite implements UnaryOperator<SparkPlan> {
  @Override
  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(new AbstractPartialFunction<SparkPlan, SparkPlan>() {
      @Override
      public boolean isDefinedAt(SparkPlan node) {
        return isWrite(node)
            && node.children().head() instanceof ColumnarToRowExec rows
            && rows.child() instanceof ArrowProjectExec;
      }

      @Override
      public SparkPlan apply(SparkPlan write) {
        SparkPlan project = ((ColumnarToRowExec) write.children().head()).child();
        List<SparkPlan> children = List.of(new ArrowRowsExec(project));
        return write.withNewChildren(CollectionConverters.asScala(children).toSeq());
      }
    });
  }

  private static boolean isWrite(SparkPlan node) {
    return node instanceof AppendDataExec
        || node instanceof OverwriteByExpressionExec
        || node instanceof OverwritePartitionsDynamicExec;
  }
}
