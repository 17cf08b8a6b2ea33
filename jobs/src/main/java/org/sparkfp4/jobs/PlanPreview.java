package org.sparkfp4.jobs;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.Role;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.Planner;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;

/**
 * What {@code quantize} would do with a checkpoint, by the roles of its tensors.
 *
 * @param family name of the model family, or null when it is not known
 * @param roles tensors by role, storage and outcome, in the order of the checkpoint; empty when there is no plan
 * @param quantizedShare share of the parameters that become FP4, 0 to 1
 * @param bytesOut bytes of the output's tensors, 0 when there is no plan
 * @param problems why there is no plan, or what its user should know
 */
record PlanPreview(String family, List<RoleRow> roles, double quantizedShare, long bytesOut, List<String> problems) {
  private static final long SLAB_BYTES = 256L << 20;

  /**
   * Tensors that are stored alike and become alike.
   *
   * @param role what they are for
   * @param stored their element types, or how their codes and scales are
   * @param outcome {@code NVFP4}, {@code BF16} of what is stored quantized, or {@code as it is}
   * @param reason why they do not become NVFP4; empty for those that do
   */
  record RoleRow(String role, List<String> stored, String outcome, String reason, long tensors, long bytes) {}

  static PlanPreview of(Checkpoint checkpoint, Families families, Layout layout, PlanOptions options) {
    ModelFamily family = null;
    try {
      family = families.of(checkpoint);
      QuantizationPlan plan = new Planner(checkpoint, family, layout, options, SLAB_BYTES, null).plan();
      PlanSummary summary = PlanSummary.of(plan, family);
      return new PlanPreview(
          family.name(), new Rows(plan, family).list(), summary.quantizedShare(), summary.bytesOut(),
          summary.warnings());
    } catch (IllegalArgumentException e) {
      return new PlanPreview(family == null ? null : family.name(), List.of(), 0, 0, List.of(e.getMessage()));
    }
  }

  /** Tells the family of a checkpoint. */
  @FunctionalInterface
  interface Families {
    /**
     * The family.
     *
     * @throws IllegalArgumentException if it is not known
     */
    ModelFamily of(Checkpoint checkpoint);
  }

  /** Collects the rows of a plan. */
  private static final class Rows {
    private final ModelFamily family;
    private final Map<String, String> reasons = new HashMap<>();
    private final Map<List<String>, Sum> sums = new LinkedHashMap<>();

    Rows(QuantizationPlan plan, ModelFamily family) {
      this.family = family;
      for (KeptModule kept : plan.kept()) {
        reasons.put(kept.module(), kept.reason());
      }

      for (OutputShard shard : plan.shards()) {
        shard.items().forEach(this::add);
      }
    }

    private void add(ShardItem item) {
      if (item instanceof ShardItem.Quantized quantized) {
        quantized.unit().members().forEach(member ->
            add(member.module() + ".weight", "NVFP4", quantized.unit().scheme(), member.weight()));
      } else if (item instanceof ShardItem.Dequantized dequantized) {
        add(dequantized.output().name(), "BF16", dequantized.scheme(), dequantized.weight());
      } else if (item instanceof ShardItem.Carried carried) {
        add(SourceTensors.module(carried.weight().name()) + ".weight", "as it is", carried.scheme(), carried.weight());
      } else if (item instanceof ShardItem.Copied copied) {
        add(copied.source().name(), "as it is", copied.source().dtype().name(), copied.source());
      }
    }

    private void add(String name, String outcome, String stored, LocatedTensor tensor) {
      String module = name.endsWith(".weight") ? name.substring(0, name.length() - ".weight".length()) : name;
      String known = reasons.get(module);
      Role role = Role.MTP.reason().equals(known) ? Role.MTP : family.role(name);
      boolean small = tensor.shape().size() < 2 && known == null;
      String reason = outcome.equals("NVFP4") ? "" : small ? "no matrix" : known == null ? role.reason() : known;
      sums.computeIfAbsent(List.of(role.description(), outcome, reason), key -> new Sum()).add(stored, tensor);
    }

    List<RoleRow> list() {
      List<RoleRow> rows = new ArrayList<>();
      sums.forEach((key, sum) -> rows.add(new RoleRow(
          key.get(0), List.copyOf(sum.stored), key.get(1), key.get(2), sum.tensors, sum.bytes)));
      return rows;
    }
  }

  private static final class Sum {
    private final TreeSet<String> stored = new TreeSet<>();
    private long tensors;
    private long bytes;

    void add(String scheme, LocatedTensor tensor) {
      stored.add(scheme);
      tensors++;
      bytes += tensor.length();
    }
  }
}
