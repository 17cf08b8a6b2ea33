package org.sparkfp4.progress;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Tasks whose results are wanted, as an RDD's collect gives them, and that are counted as they end. */
public final class CountedTasks {
  private final SparkSession spark;
  private final ProgressView view;
  private final Work work;

  /** @param view of the progress; closed when the tasks have run */
  public CountedTasks(SparkSession spark, ProgressView view, Work work) {
    this.spark = spark;
    this.view = view;
    this.work = work;
  }

  /**
   * Runs a task for each item.
   *
   * @param bytes of an item
   * @return the results, in the order of the items
   */
  public <T, R> List<R> run(List<T> items, Function<T, R> task, ToLongFunction<T> bytes) {
    if (items.isEmpty()) {
      return List.of();
    }

    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    RDD<R> rdd = context.parallelize(items, items.size()).map(task).rdd();
    List<Object> partitions = new ArrayList<>(IntStream.range(0, items.size()).boxed().toList());
    Object[] results = new Object[items.size()];
    try (RunProgress progress = new RunProgress(view, work, items.size(), items.stream().mapToLong(bytes).sum())) {
      progress.show();
      AbstractFunction2<Object, R, BoxedUnit> ended = new AbstractFunction2<>() {
        @Override
        public BoxedUnit apply(Object partition, R result) {
          results[(int) partition] = result;
          progress.finished(bytes.applyAsLong(items.get((int) partition)));
          return BoxedUnit.UNIT;
        }
      };
      context.sc().runJob(
          rdd, new Only<R>(), CollectionConverters.asScala(partitions).toSeq(), ended,
          ClassTag$.MODULE$.apply(Object.class));
    }

    @SuppressWarnings("unchecked") // nothing else was put there
    List<R> all = (List<R>) Arrays.asList(results);
    return all;
  }

  /** The one result of a partition. */
  private static final class Only<R> extends AbstractFunction2<TaskContext, Iterator<R>, R> implements Serializable {
    private static final long serialVersionUID = 1L;

    @Override
    public R apply(TaskContext context, Iterator<R> results) {
      return results.next();
    }
  }
}
