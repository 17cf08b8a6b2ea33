package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SparesTest {
  private static final class Dear implements AutoCloseable {
    private final int size;
    private final CountDownLatch closed = new CountDownLatch(1);

    private Dear(int size) {
      this.size = size;
    }

    private boolean isClosed() {
      return closed.getCount() == 0;
    }

    @Override
    public void close() {
      closed.countDown();
    }
  }

  private final Spares<Dear> spares = new Spares<>(Duration.ofMinutes(1));

  @Test
  void latestThatFitsIsTakenOver() {
    Dear first = new Dear(1);
    Dear second = new Dear(2);
    Dear third = new Dear(2);
    spares.give(first);
    spares.give(second);
    spares.give(third);

    assertThat(spares.take(dear -> dear.size == 2)).isSameAs(third);
    assertThat(spares.take(dear -> dear.size == 2)).isSameAs(second);
    assertThat(spares.take(dear -> dear.size == 2)).isNull();
    assertThat(spares.take(dear -> true)).isSameAs(first);
    assertThat(first.isClosed() || second.isClosed() || third.isClosed()).isFalse();
  }

  @Test
  void whatIsTakenIsNotClosedWithTheOthers() {
    Dear taken = new Dear(1);
    Dear left = new Dear(2);
    spares.give(left);
    spares.give(taken);
    spares.take(dear -> dear == taken);

    spares.closeAll();

    assertThat(left.isClosed()).isTrue();
    assertThat(taken.isClosed()).isFalse();
    assertThat(spares.take(dear -> true)).isNull();
  }

  @Test
  void unusedAreClosedByThemselves() throws InterruptedException {
    Spares<Dear> brief = new Spares<>(Duration.ofMillis(50));
    for (int turn = 0; turn < 2; turn++) {
      Dear unused = new Dear(turn);
      brief.give(unused);

      assertThat(unused.closed.await(20, TimeUnit.SECONDS)).isTrue();
      assertThat(brief.take(dear -> true)).isNull();
    }
  }
}
