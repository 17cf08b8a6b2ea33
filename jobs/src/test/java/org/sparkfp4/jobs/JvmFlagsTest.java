package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.apache.spark.launcher.JavaModuleOptions;
import org.junit.jupiter.api.Test;

class JvmFlagsTest {
  @Test
  void areThoseOfThisSpark() {
    assertThat(SparkSubmit.jvmFlags())
        .containsExactlyInAnyOrderElementsOf(List.of(JavaModuleOptions.defaultModuleOptions().strip().split("\\s+")));
  }
}
