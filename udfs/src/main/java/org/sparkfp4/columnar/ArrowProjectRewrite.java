package org.sparkfp4.columnar;

import java.util.function.UnaryOperator;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractPartialFunction;

/** Replaces each projection over a columnar child that can run on columns, and has a function that should. */
final class ArrowProjectRewrite implements UnaryOperator<SparkPlan> {
  private final ColumnarMode mode;

  ArrowProjectRewrite(ColumnarMode mode) {
    this.mode = mode;
  }

  @Override
  public SparkPlan apply(SparkPlan plan) {
    return plan.transformUp(new AbstractPartialFunction<SparkPlan, SparkPlan>() {
      @Override
      public boolean isDefinedAt(SparkPlan node) {
        return node instanceof ProjectExec project
            && project.child().supportsColumnar()
            && Projection.isWorthwhile(project.projectList(), project.child().output())
            && mode.enabled(project.conf());
      }

      @Override
      public SparkPlan apply(SparkPlan node) {
        ProjectExec project = (ProjectExec) node;
        return new ArrowProjectExec(project.projectList(), project.child());
      }
    });
  }
}
