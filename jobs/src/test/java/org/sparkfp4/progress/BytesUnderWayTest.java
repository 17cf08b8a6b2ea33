package org.sparkfp4.progress;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.util.LongAccumulator;
import org.junit.jupiter.api.Test;
import org.sparkfp4.TestSpark;

class BytesUnderWayTest {
  /** Tasks are in this JVM, and go on when what they have done was seen. */
  private static final CountDownLatch SEEN = new CountDownLatch(1);

  @Test
  void aTaskIsSeenToGoOnBeforeItsEnd() {
    RecordedView view = new RecordedView() {
      @Override
      public void show(Progress progress) {
        super.show(progress);
        if (progress.bytesDone() == 40) {
          SEEN.countDown();
        }
      }
    };
    SparkContext context = TestSpark.session().sparkContext();
    List<Boolean> seen;
    try (RunProgress progress = new RunProgress(view, Work.SHARDS, 2, 200);
        BytesUnderWay underWay = new BytesUnderWay(context, progress)) {
      LongAccumulator bytes = underWay.bytes();
      seen = JavaSparkContext.fromSparkContext(context).parallelize(List.of(10, 30), 2)
          .map(done -> {
            bytes.add(done);
            return SEEN.await(30, TimeUnit.SECONDS);
          })
          .collect();
    }

    assertThat(seen).containsExactly(true, true);
    assertThat(view.shown).allMatch(shown -> shown.itemsDone() == 0 && shown.bytes() == 200);
  }
}
