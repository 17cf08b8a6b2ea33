package org.sparkfp4.output;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.layouts.ActivationLayout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.StatisticsOptions;

/** Says in words how a plan differs from the one that an output was made by. */
final class PlanDifference {
  private PlanDifference() {}

  /** @param options null where the output does not say what was asked for */
  static String between(String input, PlanOptions options, List<SourceFile> sources, QuantizationPlan plan) {
    if (options != null && !options.equals(plan.options())) {
      return between(options, plan.options());
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

    return options == null
        ? "what was asked for is not recorded there"
        : "another version of the byte format, another config.json, or other statistics";
  }

  /** By the names that the command line has for them. */
  private static String between(PlanOptions then, PlanOptions now) {
    List<String> differences = new ArrayList<>();
    add(differences, "--layout", ActivationLayout.optionName(then.layout()), ActivationLayout.optionName(now.layout()));
    add(differences, "--scale-search", then.scaleSearch(), now.scaleSearch());
    add(differences, "--targets", then.targets(), now.targets());
    add(differences, "--weight-only", then.weightOnly(), now.weightOnly());
    add(differences, "--max-shard-size", size(then.maxShardBytes()), size(now.maxShardBytes()));
    add(differences, "--keep-source-precision", then.keepSourcePrecision(), now.keepSourcePrecision());
    if (!Objects.equals(then.selection(), now.selection())) {
      differences.add("the selection of layers is another");
    }

    StatisticsOptions none = new StatisticsOptions(null, null, null, null);
    add(differences, Objects.requireNonNullElse(then.statistics(), none),
        Objects.requireNonNullElse(now.statistics(), none));

    return String.join("; ", differences);
  }

  private static void add(List<String> differences, StatisticsOptions then, StatisticsOptions now) {
    add(differences, "--input-scale", then.inputScale(), now.inputScale());
    add(differences, "--weighting", then.weighting(), now.weighting());
    add(differences, "--gptq-damping", then.damping(), now.damping());
    if (!Objects.equals(then.digest(), now.digest())) {
      differences.add("the statistics of activations are others");
    }
  }

  private static String size(long bytes) {
    return bytes == 0 ? "not given" : bytes + " bytes";
  }

  private static String said(Object value) {
    return value == null ? "not given" : value.toString();
  }

  private static void add(List<String> differences, String option, Object then, Object now) {
    if (!Objects.equals(then, now)) {
      differences.add(option + " " + said(then) + " there, " + said(now) + " now");
    }
  }
}
