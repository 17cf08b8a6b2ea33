package org.sparkfp4.plan;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The shards of a plan that a job works on: partition {@code p} is the {@code p}-th of them.
 *
 * @param indices their indices in the plan
 */
public record ShardSelection(List<Integer> indices) {
  public ShardSelection {
    indices = List.copyOf(indices);
  }

  /**
   * Reads the option {@code shards}: indices with commas between, or null for all {@code count} shards of the plan.
   *
   * @throws IllegalArgumentException naming what is no index of the plan
   */
  public static ShardSelection parse(String text, int count) {
    if (text == null) {
      return new ShardSelection(IntStream.range(0, count).boxed().toList());
    }

    return new ShardSelection(
        Arrays.stream(text.split(",")).filter(part -> !part.isBlank()).map(part -> index(part.trim(), count)).toList());
  }

  private static int index(String text, int count) {
    if (!text.matches("\\d{1,9}") || Integer.parseInt(text) >= count) {
      throw new IllegalArgumentException(
          "Invalid shard in the option shards: " + text + "; the plan has the shards 0 to " + (count - 1));
    }

    return Integer.parseInt(text);
  }

  /** The form that {@link #parse} reads. */
  @Override
  public String toString() {
    return indices.stream().map(String::valueOf).collect(Collectors.joining(","));
  }
}
