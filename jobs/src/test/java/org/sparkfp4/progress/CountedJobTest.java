package org.sparkfp4.progress;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.junit.jupiter.api.Test;
import org.sparkfp4.TestSpark;
import scala.Tuple2;

class CountedJobTest {
  private final RecordedView view = new RecordedView();
  private final JavaSparkContext context = JavaSparkContext.fromSparkContext(TestSpark.session().sparkContext());
  private final CountedJob job = new CountedJob(context.sc(), view);

  @Test
  void tasksOfAllStagesAreCounted() {
    List<Tuple2<Integer, Integer>> sums = run(sums()::collect);

    assertThat(sums).hasSize(3);
    assertThat(view.shown).extracting(Progress::items).containsOnly(5 + 2);
    assertThat(view.shown).extracting(Progress::itemsDone).isSorted().startsWith(0).endsWith(7).doesNotHaveDuplicates();
    assertThat(view.closed).isTrue();
  }

  /** As the shuffles of a query are, whose plan is made while it runs. */
  @Test
  void whatHasRunBeforeIsNotCounted() {
    JavaPairRDD<Integer, Integer> shuffled = sums();
    shuffled.count();

    run(shuffled.mapToPair(sum -> new Tuple2<>(sum._2(), sum._1())).reduceByKey(Integer::sum, 4)::collect);

    assertThat(view.shown).extracting(Progress::items).containsOnly(2 + 4);
    assertThat(view.shown.get(view.shown.size() - 1).isComplete()).isTrue();
  }

  @Test
  void otherJobsAreNotCounted() {
    run(() -> 5);
    context.parallelize(List.of(1, 2), 2).collect();
    TestSpark.awaitEvents();

    assertThat(view.shown).isEmpty();
    assertThat(view.closed).isTrue();
  }

  @Test
  void jobThatFailsClosesTheView() {
    assertThatThrownBy(() -> run(context.parallelize(List.of(0), 1).map(zero -> 1 / zero)::collect))
        .hasStackTraceContaining("/ by zero");
    assertThat(view.shown).extracting(Progress::itemsDone).containsOnly(0);
    assertThat(view.closed).isTrue();
  }

  /** What is on its way to the listener while that is taken away. */
  @Test
  void whatIsToldAfterTheEndIsNotShown() throws InterruptedException {
    CountDownLatch ended = new CountDownLatch(1);
    SparkListener slow = new SparkListener() {
      @Override
      public void onStageSubmitted(SparkListenerStageSubmitted submitted) {
        try {
          ended.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
    };
    context.sc().addSparkListener(slow); // told of each event before the job's own
    try {
      job.run(sums()::collect);
      assertThat(view.closed).isTrue();
    } finally {
      ended.countDown();
      TestSpark.awaitEvents();
      context.sc().removeSparkListener(slow);
    }

    assertThat(view.shown).isEmpty();
  }

  /** Runs a job and waits for what Spark tells of it, on another thread. */
  private <R> R run(Supplier<R> action) {
    return job.run(() -> {
      try {
        return action.get();
      } finally {
        TestSpark.awaitEvents();
      }
    });
  }

  private JavaPairRDD<Integer, Integer> sums() {
    return context.parallelize(IntStream.range(0, 30).boxed().toList(), 5)
        .mapToPair(i -> new Tuple2<>(i % 3, i))
        .reduceByKey(Integer::sum, 2);
  }
}
