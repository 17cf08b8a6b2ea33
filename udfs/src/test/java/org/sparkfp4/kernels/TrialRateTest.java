package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class TrialRateTest {
  @Test
  void theReferenceEncodesSomeMegabytesASecond() {
    assertThat(TrialRate.bytesPerSecond(new JavaKernel())).isPositive().isFinite();
  }
}
