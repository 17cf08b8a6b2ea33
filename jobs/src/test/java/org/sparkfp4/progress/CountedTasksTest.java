package org.sparkfp4.progress;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.sparkfp4.TestSpark;

class CountedTasksTest {
  private final RecordedView view = new RecordedView();
  private final CountedTasks tasks = new CountedTasks(TestSpark.session(), view, Work.FILES_READ);

  @Test
  void resultsAreInOrderAndEachIsCountedOnce() {
    List<Long> items = LongStream.rangeClosed(1, 20).boxed().toList();

    List<String> results = tasks.run(items, item -> "item " + item, item -> 100 * item);

    assertThat(results).containsExactlyElementsOf(items.stream().map(item -> "item " + item).toList());
    assertThat(view.shown).extracting(Progress::itemsDone)
        .containsExactlyElementsOf(LongStream.rangeClosed(0, 20).mapToObj(done -> (int) done).toList());
    assertThat(view.shown.get(20).bytesDone()).isEqualTo(21_000).isEqualTo(view.shown.get(0).bytes());
    assertThat(view.closed).isTrue();
  }

  @Test
  void nothingToDoShowsNothing() {
    assertThat(tasks.run(List.<Long>of(), item -> item, item -> item)).isEmpty();
    assertThat(view.shown).isEmpty();
  }

  @Test
  void taskThatFailsClosesTheView() {
    assertThatThrownBy(() -> tasks.run(List.of(1L), item -> Math.floorDiv(item, 0), item -> item))
        .hasStackTraceContaining("/ by zero");
    assertThat(view.shown).extracting(Progress::itemsDone).containsExactly(0);
    assertThat(view.closed).isTrue();
  }
}
