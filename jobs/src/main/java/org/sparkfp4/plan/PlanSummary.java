package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.formats.Nvfp4;

/**
 * A plan in figures.
 *
 * @param family name of the model family
 * @param options the plan's options
 * @param tensorsIn tensors of the source
 * @param tensorsOut tensors of the output
 * @param bytesIn bytes of the source's tensors
 * @param bytesOut bytes of the output's tensors
 * @param parameters elements of the source's tensors
 * @param quantizedParameters elements that become FP4
 * @param units units, which share a global scale each
 * @param cutUnits units that are read by rows, since they are larger than {@code slabBytes}
 * @param slabBytes source bytes above which a unit is cut
 * @param taskBytes most that a task holds at once: a slab of the source, mapped, and what it becomes
 * @param shards the output's files and their bytes
 * @param kept number of modules that stay as they are, by reason
 * @param dequantized tensors that the source stores quantized and the output in BF16
 * @param dequantizedBytes bytes of these in the output
 * @param carried weights that stay as the source stores them, quantized, by how that is
 * @param carriedBytes bytes of these, scales included
 * @param dropped tensors of the source that only say how others are stored, and are not in the output: scales, shapes
 * @param inputScales number of units by the origin of their inputs' scale
 * @param warnings what the reader should know before the run
 */
public record PlanSummary(
    String family,
    PlanOptions options,
    long tensorsIn,
    long tensorsOut,
    long bytesIn,
    long bytesOut,
    long parameters,
    long quantizedParameters,
    long units,
    long cutUnits,
    long slabBytes,
    long taskBytes,
    List<ShardSize> shards,
    Map<String, Long> kept,
    long dequantized,
    long dequantizedBytes,
    Map<String, Long> carried,
    long carriedBytes,
    long dropped,
    Map<InputScale.Origin, Long> inputScales,
    List<String> warnings) {

  /** Less of a model with experts than this is quantized only by mistake. */
  private static final double LEAST_SHARE = 0.5;

  /** A file of the output. */
  public record ShardSize(String file, long bytes) {}

  /** The figures of a plan for a model of that family. */
  public static PlanSummary of(QuantizationPlan plan, ModelFamily family) {
    Count count = new Count();
    for (OutputShard shard : plan.shards()) {
      shard.items().forEach(item -> count.add(item, plan.slabBytes()));
    }

    for (DroppedTensor dropped : plan.dropped()) {
      count.tensorsIn++;
      count.bytesIn += dropped.length();
    }

    Map<String, Long> kept = new LinkedHashMap<>();
    plan.kept().forEach(module -> kept.merge(module.reason(), 1L, Long::sum));
    return new PlanSummary(
        plan.family(),
        plan.options(),
        count.tensorsIn,
        count.tensorsOut,
        count.bytesIn,
        plan.shards().stream().mapToLong(OutputShard::dataBytes).sum(),
        count.parameters,
        count.quantized,
        count.units,
        count.cutUnits,
        plan.slabBytes(),
        count.taskBytes,
        plan.shards().stream().map(shard -> new ShardSize(shard.file(), shard.dataBytes())).toList(),
        kept,
        count.dequantized,
        count.dequantizedBytes,
        count.carried,
        count.carriedBytes,
        count.scales + plan.dropped().size(),
        count.inputScales(),
        warnings(plan, family, count));
  }

  private static List<String> warnings(QuantizationPlan plan, ModelFamily family, Count count) {
    List<String> warnings = new ArrayList<>();
    double share = (double) count.quantized / count.parameters;
    if (family.hasExperts() && share < LEAST_SHARE) {
      warnings.add(String.format(
          Locale.ROOT,
          "only %.1f %% of the parameters are quantized: see what is kept, and why; --targets may choose more",
          100 * share));
    }

    if (plan.options().weightOnly()) {
      return warnings;
    }

    UnitNames names = new UnitNames(
        plan.shards().stream().flatMap(shard -> shard.units().stream()).map(Unit::name).toList());
    if (plan.options().statistics() != null) {
      count.withoutTokens.forEach((origin, units) -> warnings.add(withoutTokens(origin, units, names)));
    }

    if (plan.options().statistics() == null) {
      warnings.add("input scales are 1.0, as there are no activation statistics: blocks of activations whose largest "
          + "magnitude is below about 0.006 become zero; --weight-only keeps activations in high precision");
    }

    List<String> unweighted = plan.unweightedUnits();
    if (!unweighted.isEmpty()) {
      warnings.add(String.format(
          Locale.ROOT, "%s without statistics, or that saw no token, swept without weights: %s", counted(unweighted),
          names.text(unweighted)));
    }

    return warnings;
  }

  private static String withoutTokens(InputScale.Origin origin, List<String> units, UnitNames names) {
    return String.format(
        Locale.ROOT,
        origin == InputScale.Origin.PEERS
            ? "input scales of %s are the largest of the other experts, as no token, or none but zeros, came there: %s"
            : "input scales of %s are 1.0, as there are no statistics of their inputs, or none but of zeros: %s",
        counted(units), names.text(units));
  }

  private static String counted(List<String> units) {
    return units.size() == 1 ? "1 unit" : String.format(Locale.ROOT, "%,d units", units.size());
  }

  /** The same of an output whose files are made from the plan's: theirs instead. */
  public PlanSummary withFiles(long tensors, List<ShardSize> files) {
    return new PlanSummary(
        family, options, tensorsIn, tensors, bytesIn, files.stream().mapToLong(ShardSize::bytes).sum(), parameters,
        quantizedParameters, units, cutUnits, slabBytes, taskBytes, files, kept, dequantized, dequantizedBytes, carried,
        carriedBytes, dropped, inputScales, warnings);
  }

  /** The share of parameters that become FP4, 0 to 1. */
  public double quantizedShare() {
    return (double) quantizedParameters / parameters;
  }

  /** The weights that stay as the source stores them, in words. */
  public String carriedText() {
    return carried.entrySet().stream()
        .map(entry -> String.format(Locale.ROOT, "%,d weights %s", entry.getValue(), entry.getKey()))
        .collect(Collectors.joining(", "));
  }

  /** The warnings alone, a line each. */
  public String warningText() {
    return new PlanSummaryText(this).warnings();
  }

  /** The summary as lines of text. */
  public String text() {
    return new PlanSummaryText(this).text();
  }

  /** Sums over the items of a plan. */
  private static final class Count {
    private long tensorsIn;
    private long tensorsOut;
    private long bytesIn;
    private long parameters;
    private long quantized;
    private long units;
    private long cutUnits;
    private long taskBytes;
    private long dequantized;
    private long dequantizedBytes;
    private final Map<String, Long> carried = new TreeMap<>();
    private long carriedBytes;
    private long scales;
    private final Map<InputScale.Origin, List<String>> withoutTokens = new EnumMap<>(InputScale.Origin.class);
    private long measured;

    Map<InputScale.Origin, Long> inputScales() {
      Map<InputScale.Origin, Long> counts = new EnumMap<>(InputScale.Origin.class);
      if (measured > 0) {
        counts.put(InputScale.Origin.MEASURED, measured);
      }

      withoutTokens.forEach((origin, units) -> counts.put(origin, (long) units.size()));
      return counts;
    }

    void add(ShardItem item, long slabBytes) {
      tensorsOut += item.outputs().size();
      for (LocatedTensor tensor : item.sources()) {
        tensorsIn++;
        bytesIn += tensor.length();
      }

      if (item instanceof ShardItem.Copied copied) {
        parameters += elements(copied.source());
      } else if (item instanceof ShardItem.Carried stored) {
        parameters += elements(stored.weight());
        carried.merge(stored.scheme(), 1L, Long::sum);
        carriedBytes += stored.sourceBytes();
      } else if (item instanceof ShardItem.Dequantized stored) {
        parameters += elements(stored.weight());
        dequantized++;
        scales++;
        dequantizedBytes += stored.output().length();
      } else if (item instanceof ShardItem.Quantized whole) {
        Unit unit = whole.unit();
        for (Member member : unit.members()) {
          parameters += elements(member.weight());
          quantized += elements(member.weight());
          scales += member.scale() == null ? 0 : 1;
        }

        if (whole.inputScale().origin() == InputScale.Origin.MEASURED) {
          measured++;
        } else {
          withoutTokens.computeIfAbsent(whole.inputScale().origin(), origin -> new ArrayList<>()).add(unit.name());
        }

        units++;
        cutUnits += unit.isCut(slabBytes) ? 1 : 0;
        taskBytes = Math.max(taskBytes, taskBytes(unit, slabBytes));
      }
    }

    private static long elements(LocatedTensor tensor) {
      return tensor.rows() * tensor.cols();
    }

    /** A slab and its output; of a member that is cut, the block scales of all slabs too, which follow its codes. */
    private static long taskBytes(Unit unit, long slabBytes) {
      long blocks = unit.cols() / Nvfp4.BLOCK;
      long outputRowBytes = blocks * (Nvfp4.BLOCK / 2 + 1);
      long most = 0;
      for (Slab slab : unit.slabs(slabBytes)) {
        long source = slab.isWhole()
            ? unit.sourceBytes()
            : unit.dataBytes(slab.rows()) + unit.scaleBytes(slab.rows());
        long rows = slab.isWhole()
            ? unit.members().stream().mapToLong(member -> member.weight().rows()).sum()
            : slab.rows();
        long scales = slab.isWhole() ? 0 : blocks * unit.members().get(slab.member()).weight().rows();
        most = Math.max(most, source + rows * outputRowBytes + scales);
      }

      return most;
    }
  }
}
