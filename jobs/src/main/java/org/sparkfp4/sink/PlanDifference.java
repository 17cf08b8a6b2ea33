package org.sparkfp4.sink;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.SourceFile;

/** Says in words how a plan differs from the one that an output was made by. */
final class PlanDifference {
  private PlanDifference() {}

  static String between(String input, PlanOptions options, List<SourceFile> sources, QuantizationPlan plan) {
    if (!options.equals(plan.options())) {
      return "options " + options + " there, " + plan.options() + " now";
    }

    if (!input.equals(plan.input())) {
      return "source " + input + " there, " + plan.input() + " now";
    }

    Map<String, SourceFile> then = new TreeMap<>();
    sources.forEach(file -> then.put(file.name(), file));
    for (SourceFile now : plan.sources()) {
      if (!Objects.equals(then.get(now.name()), now)) {
        return "source file " + now.name() + " changed";
      }
    }

    return "another version of the byte format, another config.json, or other statistics";
  }
}
