package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.jobs.Printable;

/** What a verification found: the first differences in words, the others counted. */
final class Differences implements Serializable {
  private static final long serialVersionUID = 1L;

  private final int limit;
  private final List<String> first = new ArrayList<>();
  private long count;

  /** Keeps at most {@code limit} descriptions. */
  Differences(int limit) {
    this.limit = limit;
  }

  void add(String description) {
    count++;
    if (first.size() < limit) {
      first.add(Printable.of(description));
    }
  }

  void addAll(Differences others) {
    others.first.stream().limit(limit - first.size()).forEach(first::add);
    count += others.count;
  }

  List<String> first() {
    return List.copyOf(first);
  }

  long count() {
    return count;
  }
}
