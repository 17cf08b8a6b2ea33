package org.sparkfp4.plan;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
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
   * Reads the option {@code shards}: indices with commas between; null or blank for all {@code count} shards of a plan.
   *
   * @throws IllegalArgumentException naming what is no index of the plan, or is there twice
   */
  public static ShardSelection parse(String text, int count) {
    if (text == null || text.isBlank()) {
      return new ShardSelection(IntStream.range(0, count).boxed().toList());
    }

    Set<Integer> indices = new LinkedHashSet<>();
    for (String part : text.split(",", -1)) {
      if (!indices.add(index(part.strip(), text, count))) {
        throw new IllegalArgumentException("Invalid option shards: \"" + text + "\" has " + part.strip() + " twice");
      }
    }

    return new ShardSelection(List.copyOf(indices));
  }

  private static int index(String part, String text, int count) {
    if (!part.matches("\\d{1,9}")) {
      throw new IllegalArgumentException("Invalid option shards: \"" + text + "\"; give numbers such as 0,1,5");
    }

    int index = Integer.parseInt(part);
    if (index >= count) {
      throw new IllegalArgumentException(
          "Invalid option shards: " + index + "; the plan has " + count + " shards, from 0");
    }

    return index;
  }

  /** The form that {@link #parse} reads. */
  @Override
  public String toString() {
    return indices.stream().map(String::valueOf).collect(Collectors.joining(","));
  }
}
