package org.sparkfp4.plan;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** The summary of a plan for a terminal. */
final class PlanSummaryText {
  /** More shards than these are told as a range of sizes. */
  private static final int LISTED_SHARDS = 16;

  private final PlanSummary summary;

  PlanSummaryText(PlanSummary summary) {
    this.summary = summary;
  }

  String text() {
    StringBuilder text = new StringBuilder();
    PlanOptions options = summary.options();
    line(text, "model", "%s to NVFP4 (%s), layout %s, targets %s, scale search %s",
        summary.family(), options.weightOnly() ? "W4A16" : "W4A4", options.layout(), options.targets(),
        options.scaleSearch());
    line(text, "tensors", "%,d in, %,d out", summary.tensorsIn(), summary.tensorsOut());
    line(text, "bytes", "%s in, %s out (%.3f)", ByteSize.format(summary.bytesIn()), ByteSize.format(summary.bytesOut()),
        (double) summary.bytesOut() / summary.bytesIn());
    line(text, "parameters", "%,d, of which %.1f %% are quantized", summary.parameters(),
        100 * summary.quantizedShare());
    line(text, "units", "%,d, of which %,d are over %s and cut", summary.units(), summary.cutUnits(),
        ByteSize.format(summary.slabBytes()));
    line(text, "memory", "%s a task at most: a slab of the source, mapped, and its output",
        ByteSize.format(summary.taskBytes()));
    shards(text, summary.shards());
    line(text, "kept", "%s", summary.kept().entrySet().stream()
        .map(entry -> String.format(Locale.ROOT, "%s (%,d)", entry.getKey(), entry.getValue()))
        .collect(Collectors.joining("; ")));
    if (!summary.carried().isEmpty()) {
      line(text, "as stored", "%s: in the source's precision, %s", summary.carriedText(), ByteSize.format(summary.carriedBytes()));
    }

    if (summary.dropped() > 0) {
      line(text, "to BF16", "%,d tensors that the source stores quantized, %s; its scales and shapes, %,d tensors, end "
          + "here", summary.dequantized(), ByteSize.format(summary.dequantizedBytes()), summary.dropped());
    }

    if (options.statistics() != null && !options.weightOnly()) {
      line(text, "inputs", "scales by %s: %s", options.statistics().inputScale(),
          summary.inputScales().entrySet().stream()
              .map(entry -> String.format(Locale.ROOT, "%,d %s", entry.getValue(), origin(entry.getKey())))
              .collect(Collectors.joining(", ")));
    }

    return text.append(warnings()).toString();
  }

  String warnings() {
    StringBuilder text = new StringBuilder();
    summary.warnings().forEach(warning -> line(text, "warning", "%s", warning));
    return text.toString();
  }

  private static String origin(InputScale.Origin origin) {
    return switch (origin) {
      case MEASURED -> "measured";
      case PEERS -> "of other experts";
      case ASSUMED -> "1.0";
    };
  }

  private static void shards(StringBuilder text, List<PlanSummary.ShardSize> shards) {
    if (shards.size() > LISTED_SHARDS) {
      long least = shards.stream().mapToLong(PlanSummary.ShardSize::bytes).min().orElseThrow();
      long most = shards.stream().mapToLong(PlanSummary.ShardSize::bytes).max().orElseThrow();
      line(text, "shards", "%,d, %s to %s each", shards.size(), ByteSize.format(least), ByteSize.format(most));
    } else {
      line(text, "shards", "%,d", shards.size());
      shards.forEach(shard -> line(text, "", "%s  %s", shard.file(), ByteSize.format(shard.bytes())));
    }
  }

  private static void line(StringBuilder text, String label, String format, Object... values) {
    text.append(String.format(Locale.ROOT, "%-11s", label))
        .append(String.format(Locale.ROOT, format, values))
        .append('\n');
  }
}
