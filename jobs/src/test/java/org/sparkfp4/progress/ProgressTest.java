package org.sparkfp4.progress;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class ProgressTest {
  private static final long GB = 1_000_000_000;

  @Test
  void textHasRateAndTimeLeft() {
    assertThat(new Progress(66, 12, 100 * GB, 18 * GB, Duration.ofSeconds(9)).text())
        .isEqualTo("12 of 66 shards, 18 %, 2.00 GB/s of source, 41s left");
    assertThat(new Progress(66, 1, 20_000 * GB, GB, Duration.ofSeconds(1)).text())
        .isEqualTo("1 of 66 shards, 0 %, 1.00 GB/s of source, 5h33m19s left");
  }

  @Test
  void noRateBeforeFirstShard() {
    Progress begun = new Progress(1, 0, GB, 0, Duration.ofMillis(3));

    assertThat(begun.text()).isEqualTo("0 of 1 shard, 0 %");
    assertThat(begun.left()).isNull();
  }

  @Test
  void completeRunHasNothingLeft() {
    assertThat(new Progress(2, 2, 3 * GB, 3 * GB, Duration.ofSeconds(2)).text())
        .isEqualTo("2 of 2 shards, 100 %, 1.50 GB/s of source");
  }

  @Test
  void terminalLineIsDrawnOverAndGoneAtTheEnd() {
    ByteArrayOutputStream drawn = new ByteArrayOutputStream();
    try (TerminalLine line = new TerminalLine(new PrintStream(drawn, true, StandardCharsets.UTF_8))) {
      line.show(new Progress(2, 0, GB, 0, Duration.ZERO));
      line.show(new Progress(2, 1, GB, GB / 2, Duration.ofSeconds(1)));
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
