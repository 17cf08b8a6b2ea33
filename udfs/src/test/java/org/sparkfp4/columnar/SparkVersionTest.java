package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;

class SparkVersionTest {
  private final SparkSession spark = TestSpark.extended();

  @Test
  void isWhatSparkSays() {
    SparkVersion.current().requireSupported();

    assertThat(SparkVersion.current().reasonAgainstColumns()).isEmpty();
    assertThat(new SparkVersion(spark.version()).reasonAgainstColumns()).isEmpty();
  }

  @Test
  void otherMinorVersionsRunRowByRow() {
    for (String version : new String[] {"4.0.4", "4.2.0", "4.10.0", "5.0.0-preview1", "unknown"}) {
      SparkVersion other = new SparkVersion(version);

      other.requireSupported();
      assertThat(other.reasonAgainstColumns()).hasValueSatisfying(
          reason -> assertThat(reason).startsWith("this is Spark " + version + ", ").contains("row by row"));
    }

    assertThat(new SparkVersion("4.1.0").reasonAgainstColumns()).isEmpty();
    assertThat(new SparkVersion("4.1.3-vendor.7").reasonAgainstColumns()).isEmpty();
  }

  @Test
  void olderOnesAreRefused() {
    for (String version : new String[] {"3.5.9", "2.4.8"}) {
      assertThatThrownBy(() -> new SparkVersion(version).requireSupported())
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith("Cannot run on Spark " + version + ": ")
          .hasMessageContaining("needs 4.0 or later");
    }
  }
}
