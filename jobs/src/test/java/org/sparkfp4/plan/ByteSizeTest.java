package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ByteSizeTest {
  @ParameterizedTest
  @CsvSource({"4096, 4096", "16GiB, 17179869184", "5GB, 5000000000", "1.5 TB, 1500000000000", "3 kib, 3072", "7b, 7"})
  void readsUnits(String text, long bytes) {
    assertThat(ByteSize.parse(text)).isEqualTo(new ByteSize(bytes));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "0", "-1", "GiB", "5 parsecs", "16GiB please", "99999999999TB", "0.1"})
  void refusesWhatIsNoSize(String text) {
    assertThatThrownBy(() -> ByteSize.parse(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid size: " + text + " (say for example 16GiB, 5GB or 4096)");
  }

  @Test
  void writesForReaders() {
    assertThat(ByteSize.format(999)).isEqualTo("999 bytes");
    assertThat(ByteSize.format(1000)).isEqualTo("1.00 kB");
    assertThat(ByteSize.format(16L << 30)).isEqualTo("17.18 GB");
    assertThat(new ByteSize(5_000_000_000L)).hasToString("5.00 GB");
  }
}
