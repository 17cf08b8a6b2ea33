package org.sparkfp4.calibration;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** Statistics in lines of text. */
public final class StatisticsSummary {
  /** More dead experts of a layer than these are counted and not named. */
  private static final int NAMED = 24;

  private final StatisticsIndex index;

  public StatisticsSummary(StatisticsIndex index) {
    this.index = index;
  }

  /** How many modules and tokens there are, how tokens spread over experts, and which experts saw none. */
  public String text() {
    StringBuilder text = new StringBuilder();
    line(text, "modules", "%,d, of which %,d saw no token", index.modules().size(),
        index.modules().stream().filter(module -> module.tokens() == 0).count());
    line(text, "tokens", "%,d of a module at most", index.modules().stream()
        .mapToLong(ModuleStatistics::tokens).max().orElse(0));
    line(text, "hessian", "%s", index.hessian());
    if (!index.experts().isEmpty()) {
      line(text, "experts", "%,d layers; tokens of an expert: %s", index.experts().size(), histogram());
      index.experts().stream().filter(layer -> !layer.dead().isEmpty()).forEach(layer -> line(
          text, "dead", "%s: %s", layer.experts(), dead(layer.dead())));
    }

    return text.toString();
  }

  /** How many experts of all layers have a number of tokens of so many digits. */
  private String histogram() {
    List<Long> counts = new ArrayList<>();
    index.experts().forEach(layer -> layer.tokens().forEach(tokens -> {
      int digits = tokens == 0 ? 0 : Long.toString(tokens).length();
      while (counts.size() <= digits) {
        counts.add(0L);
      }

      counts.set(digits, counts.get(digits) + 1);
    }));
    List<String> parts = new ArrayList<>();
    long begin = 1;
    for (int digits = 0; digits < counts.size(); digits++) {
      String range = digits == 0 ? "none" : String.format(Locale.ROOT, "%,d to %,d", begin, begin * 10 - 1);
      begin *= digits == 0 ? 1 : 10;
      if (counts.get(digits) > 0) {
        parts.add(String.format(Locale.ROOT, "%s (%,d experts)", range, counts.get(digits)));
      }
    }

    return String.join(", ", parts);
  }

  private static String dead(List<Integer> experts) {
    String named = experts.stream().limit(NAMED).map(String::valueOf).collect(Collectors.joining(", "));
    return experts.size() > NAMED ? named + " and " + (experts.size() - NAMED) + " more" : named;
  }

  private static void line(StringBuilder text, String label, String format, Object... values) {
    text.append(String.format(Locale.ROOT, "%-11s", label)).append(String.format(Locale.ROOT, format, values))
        .append('\n');
  }
}
