package org.sparkfp4.progress;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ProgressTest {
  private static final long GB = 1_000_000_000;

  @Test
  void textHasRateAndTimeLeft() {
    assertThat(new Progress(Work.SHARDS, 66, 12, 100 * GB, 18 * GB, Duration.ofSeconds(9)).text())
        .isEqualTo("12 of 66 shards, 18 %, 2.00 GB/s of source, 41s left");
    assertThat(new Progress(Work.SHARDS, 66, 1, 20_000 * GB, GB, Duration.ofSeconds(1)).text())
        .isEqualTo("1 of 66 shards, 0 %, 1.00 GB/s of source, 5h33m19s left");
  }

  @Test
  void noRateBeforeFirstShard() {
    Progress begun = new Progress(Work.SHARDS, 1, 0, GB, 0, Duration.ofMillis(3));

    assertThat(begun.text()).isEqualTo("0 of 1 shard, 0 %");
    assertThat(begun.left()).isNull();
  }

  @Test
  void completeRunHasNothingLeft() {
    assertThat(new Progress(Work.SHARDS, 2, 2, 3 * GB, 3 * GB, Duration.ofSeconds(2)).text())
        .isEqualTo("2 of 2 shards, 100 %, 1.50 GB/s of source");
  }

  @Test
  void textNamesWhatARunGoesThrough() {
    assertThat(new Progress(Work.FILES_WRITTEN, 3, 1, 3 * GB, GB, Duration.ofSeconds(2)).text())
        .isEqualTo("1 of 3 files, 33 %, 0.50 GB/s of output, 4s left");
    assertThat(new Progress(Work.SHARDS_COMPARED, 1, 1, GB, GB, Duration.ofSeconds(2)).text())
        .isEqualTo("1 of 1 shard, 100 %, 0.50 GB/s of checkpoint");
  }

  @Test
  void whereBytesAreNotKnownItemsCount() {
    Progress tasks = new Progress(Work.TASKS, 4, 1, 0, 0, Duration.ofSeconds(10));

    assertThat(tasks.text()).isEqualTo("1 of 4 tasks, 25 %, 30s left");
    assertThat(new Progress(Work.TASKS, 4, 0, 0, 0, Duration.ofSeconds(10)).text()).isEqualTo("0 of 4 tasks, 0 %");
    assertThat(new Progress(Work.TASKS, 4, 4, 0, 0, Duration.ofSeconds(10)).text()).isEqualTo("4 of 4 tasks, 100 %");
  }

  @Test
  void slowRunIsToldInMegabytes() {
    assertThat(new Progress(Work.SHARDS_COMPARED, 4, 1, GB / 5, GB / 20, Duration.ofSeconds(10)).text())
        .isEqualTo("1 of 4 shards, 25 %, 5.0 MB/s of checkpoint, 30s left");
  }

  @Test
  void runCountsWhatIsFinishedAndClosesItsView() {
    RecordedView view = new RecordedView();
    try (RunProgress run = new RunProgress(view, Work.FILES_WRITTEN, 2, 30)) {
      run.show();
      run.finished(10);
      run.finished(20);
      assertThat(view.closed).isFalse();
    }

    assertThat(view.closed).isTrue();
    assertThat(view.shown).extracting(Progress::itemsDone).containsExactly(0, 1, 2);
    assertThat(view.shown).extracting(Progress::bytesDone).containsExactly(0L, 10L, 30L);
    assertThat(view.shown).allMatch(shown -> shown.items() == 2 && shown.bytes() == 30);
    assertThat(view.shown.get(2).isComplete()).isTrue();
  }

  @Test
  void whatIsUnderWayCountsUntilItIsFinished() {
    RecordedView view = new RecordedView();
    try (RunProgress run = new RunProgress(view, Work.SHARDS, 2, 30)) {
      run.underWay(Map.of(0, 4L, 1, 5L));
      run.finished(1, 20);
      // told late, of what is finished; then told anew
      run.underWay(Map.of(1, 19L));
      run.underWay(Map.of(0, 8L));
      // of another that tries the same
      run.underWay(Map.of(0, 6L));
    }

    assertThat(view.shown).extracting(Progress::bytesDone).containsExactly(9L, 24L, 24L, 28L, 28L);
    assertThat(view.shown).extracting(Progress::itemsDone).containsExactly(0, 1, 1, 1, 1);
    assertThat(view.shown.get(0).text()).startsWith("0 of 2 shards, 30 %, ");
  }

  @Test
  void nothingIsShownOnceItIsClosed() {
    RecordedView view = new RecordedView();
    RunProgress run = new RunProgress(view, Work.SHARDS, 2, 30);
    run.close();
    run.underWay(Map.of(0, 4L));

    assertThat(view.shown).isEmpty();
  }

  @Test
  void terminalLineIsDrawnOverAndGoneAtTheEnd() {
    ByteArrayOutputStream drawn = new ByteArrayOutputStream();
    try (TerminalLine line = new TerminalLine(new PrintStream(drawn, true, StandardCharsets.UTF_8))) {
      line.show(new Progress(Work.SHARDS, 2, 0, GB, 0, Duration.ZERO));
      line.show(new Progress(Work.SHARDS, 2, 1, GB, GB / 2, Duration.ofSeconds(1)));
    }

    assertThat(drawn.toString(StandardCharsets.UTF_8)).isEqualTo(
        "0 of 2 shards, 0 %\033[K\r1 of 2 shards, 50 %, 0.50 GB/s of source, 1s left\033[K\r\033[K\r");
  }

  @Test
  void terminalLineThatWasNeverDrawnLeavesTheTerminalAlone() {
    ByteArrayOutputStream drawn = new ByteArrayOutputStream();
    new TerminalLine(new PrintStream(drawn, true, StandardCharsets.UTF_8)).close();

    assertThat(drawn.size()).isZero();
  }

  @Test
  void settingThatIsNone() {
    assertThatThrownBy(() -> ProgressView.of("loud"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid spark.fp4.progress: loud; it is auto, line, log or off");
  }
}
