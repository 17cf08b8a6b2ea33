package org.sparkfp4.output;

import java.util.ArrayList;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Runs the tasks that write a plan's files, kind after kind. */
public final class WritingJob {
  private final SparkContext context;
  private final String command;
  private final String group;

  /**
   * @param command what Spark's pages call the tasks by
   * @param fingerprint the plan's: its jobs are a group
   */
  public WritingJob(SparkContext context, String command, String fingerprint) {
    this.context = context;
    this.command = command;
    this.group = "sparkfp4-" + fingerprint;
  }

  /**
   * Runs a task for each number.
   *
   * @param finished told the number of each task that ends well, as it does
   * @param what the tasks write, for Spark's pages
   * @throws BadSourceException if one refuses its source; what the others finished is kept
   */
  public void run(List<Integer> numbers, WritingTask<?, Integer> task, IntConsumer finished, String what) {
    if (!numbers.isEmpty()) {
      JavaSparkContext java = JavaSparkContext.fromSparkContext(context);
      List<Integer> partitions = IntStream.range(0, numbers.size()).boxed().toList();
      run(java.parallelize(numbers, numbers.size()).rdd(), partitions, task,
          index -> finished.accept(numbers.get(index)), what);
    }
  }

  /** The same for some partitions of what there is already; {@code finished} is told their places in the list. */
  public <T> void run(
      RDD<T> rdd, List<Integer> partitions, WritingTask<?, T> task, IntConsumer finished, String what) {
    context.setJobGroup(group, command + ": " + what, false);
    try {
      List<Object> indices = new ArrayList<>(partitions);
      context.runJob(
          rdd, task, CollectionConverters.asScala(indices).toSeq(), new Outcomes(finished),
          ClassTag$.MODULE$.apply(String.class));
    } catch (RuntimeException e) {
      // a refusal ends the job while its other tasks run on
      context.cancelJobGroup(group);
      throw refusalOr(e);
    } finally {
      context.clearJobGroup();
    }
  }

  private static RuntimeException refusalOr(RuntimeException e) {
    for (Throwable cause = e; cause != null; cause = cause.getCause()) {
      if (cause instanceof BadSourceException bad) {
        return bad;
      }
    }

    return e;
  }

  /** Counts what ended well; thrown on the driver, a refusal ends the job at once. */
  private static final class Outcomes extends AbstractFunction2<Object, String, BoxedUnit> {
    private final IntConsumer finished;

    Outcomes(IntConsumer finished) {
      this.finished = finished;
    }

    @Override
    public BoxedUnit apply(Object index, String refusal) {
      if (!refusal.isEmpty()) {
        throw new BadSourceException(refusal);
      }

      finished.accept((int) index);
      return BoxedUnit.UNIT;
    }
  }
}
