package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Shell patterns of module names, each for the whole name: {@code *} stands for any text, dots included, and {@code ?}
 * for one character. {@code *.experts.*} is therefore no pattern of {@code mlp.shared_experts.up_proj}.
 */
final class ModulePatterns {
  private final List<Entry> entries = new ArrayList<>();

  ModulePatterns(List<String> patterns) {
    patterns.forEach(pattern -> entries.add(new Entry(pattern, regex(pattern))));
  }

  private static Pattern regex(String pattern) {
    StringBuilder regex = new StringBuilder();
    for (char c : pattern.toCharArray()) {
      switch (c) {
        case '*' -> regex.append(".*");
        case '?' -> regex.append('.');
        default -> regex.append(Pattern.quote(String.valueOf(c)));
      }
    }

    return Pattern.compile(regex.toString(), Pattern.DOTALL);
  }

  boolean isEmpty() {
    return entries.isEmpty();
  }

  /** The first pattern of a module's name, or null. All of its patterns count as used. */
  String match(String module) {
    String first = null;
    for (Entry entry : entries) {
      if (entry.regex.matcher(module).matches()) {
        entry.used = true;
        first = first == null ? entry.pattern : first;
      }
    }

    return first;
  }

  /** The patterns that matched no name so far. */
  List<String> unused() {
    return entries.stream().filter(entry -> !entry.used).map(entry -> entry.pattern).toList();
  }

  private static final class Entry {
    private final String pattern;
    private final Pattern regex;
    private boolean used;

    Entry(String pattern, Pattern regex) {
      this.pattern = pattern;
      this.regex = regex;
    }
  }
}
