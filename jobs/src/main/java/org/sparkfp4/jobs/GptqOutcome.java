package org.sparkfp4.jobs;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import org.sparkfp4.output.LayerError;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;

/**
 * Where GPTQ's codes were taken.
 *
 * @param layers quantized layers; 0 where GPTQ was not asked for
 * @param fewTokens layers that kept the weighted search's codes, as they saw too few tokens, or are exact
 * @param notBetter layers that kept them, at least in part, as the error of held-out outputs did not fall
 */
record GptqOutcome(int layers, List<String> fewTokens, List<String> notBetter) {
  /** More layers than these are counted and not named; the manifest has them all. */
  private static final int NAMED = 12;

  static GptqOutcome of(QuantizationPlan plan, List<ShardRecord> records) {
    if (!plan.options().isGptq()) {
      return new GptqOutcome(0, List.of(), List.of());
    }

    Map<String, Long> rows = new HashMap<>();
    for (ShardRecord record : records) {
      record.layers().forEach((LayerError layer) -> rows.put(layer.module(), layer.gptqRows()));
    }

    return new GptqOutcome(
        rows.size(),
        modules(plan, unit -> !plan.importance().isFull(unit), member -> true),
        modules(plan, plan.importance()::isFull, member -> rows.get(member.module()) < member.weight().rows()));
  }

  private static List<String> modules(QuantizationPlan plan, Predicate<Unit> units, Predicate<Member> members) {
    return plan.shards().stream()
        .flatMap(shard -> shard.units().stream())
        .filter(units)
        .flatMap(unit -> unit.members().stream())
        .filter(members)
        .map(Member::module)
        .toList();
  }

  /** Lines of text; none where GPTQ was not asked for. */
  String text() {
    return layers == 0
        ? ""
        : String.format(Locale.ROOT, "GPTQ: %,d of %,d layers%n", layers - fewTokens.size() - notBetter.size(), layers)
            + line("weighted, with fewer tokens than 4 K", fewTokens)
            + line("weighted, as held-out outputs are not nearer by GPTQ", notBetter);
  }

  private static String line(String what, List<String> modules) {
    return modules.isEmpty()
        ? ""
        : String.format(
            Locale.ROOT, "  %s (%,d): %s%s%n", what, modules.size(),
            String.join(", ", modules.subList(0, Math.min(NAMED, modules.size()))),
            modules.size() > NAMED ? ", ..." : "");
  }
}
