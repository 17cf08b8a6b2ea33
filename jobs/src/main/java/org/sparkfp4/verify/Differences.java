package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.sparkfp4.files.Printable;

/** What a verification found: the first differences in words, the others counted. */
final class Differences implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Descriptions in {@link #text}. */
  private static final int PRINTED = 20;

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

  /** The differences for a reader, or that there is none. */
  String text() {
    if (count == 0) {
      return "No difference found";
    }

    StringBuilder text = new StringBuilder(String.format(Locale.ROOT, "%,d %s found:", count,
        count == 1 ? "difference" : "differences"));
    first.stream().limit(PRINTED).forEach(line -> text.append(String.format("%n  %s", line)));
    if (count > PRINTED) {
      text.append(String.format(Locale.ROOT, "%n  … and %,d more", count - PRINTED));
    }

    return text.toString();
  }

  List<String> first() {
    return List.copyOf(first);
  }

  long count() {
    return count;
  }
}
