package org.sparkfp4.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.output.ExceptionalEvents;
import org.sparkfp4.output.LayerError;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.verify.LayerCheck;
import org.sparkfp4.verify.VerificationResult;

/** A report with all that its three forms are made of. */
public final class RunReport {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  /** Outliers that a terminal shows. */
  private static final int NAMED = 10;

  private final Report report;
  private final List<LayerRow> rows;
  private final ExpertLoad load;

  RunReport(Report report, List<LayerRow> rows, ExpertLoad load) {
    this.report = report;
    this.rows = rows;
    this.load = load;
  }

  /**
   * Of a checkpoint that was written.
   *
   * @param summary the plan's, with the output's files, which may be made from the plan's shards
   * @param output its folder
   * @param load tokens of the experts, or null
   * @param stages what was done; empty where nothing was left to do
   */
  public static RunReport ofQuantize(
      String producer,
      QuantizationPlan plan,
      PlanSummary summary,
      ModelFamily family,
      List<ShardRecord> records,
      String output,
      ExpertLoad load,
      Stages stages) {
    List<LayerRow> rows = Outliers.mark(rows(plan, family, records));
    return new RunReport(
        new Report(
            producer, "quantize", begun(stages), plan.input(), output, options(plan.family(), plan.options()),
            summary(rows, summary.parameters(), summary.bytesIn(), summary.bytesOut(), null),
            Kind.of(rows), outliers(rows), null, CoarseScales.warnings(rows), null, null,
            events(ExceptionalEvents.of(plan, records)),
            load == null ? null : load.dead(), stages.list()),
        rows, load);
  }

  /**
   * Of a checkpoint that was verified.
   *
   * @param output its folder
   * @param family the source's, or null
   * @param load tokens of the experts, or null
   */
  public static RunReport ofVerify(
      String producer,
      Checkpoint source,
      ModelFamily family,
      VerificationResult result,
      String output,
      ExpertLoad load,
      Stages stages) {
    List<LayerRow> rows = Outliers.mark(result.layers().stream().map(check -> LayerRow.of(check, family)).toList());
    long bytesIn = source.tensors().stream().mapToLong(LocatedTensor::length).sum();
    return new RunReport(
        new Report(
            producer, "verify", begun(stages), source.path().toString(), output, Map.of(),
            summary(rows, null, bytesIn, result.bytes(), result), Kind.of(rows), outliers(rows), result.differences(),
            CoarseScales.warnings(rows),
            result.counts().codes(), result.counts().scales(), null, load == null ? null : load.dead(),
            stages.list()),
        rows, load);
  }

  private static String begun(Stages stages) {
    return stages.begun().truncatedTo(ChronoUnit.SECONDS).toString();
  }

  private static List<LayerRow> rows(QuantizationPlan plan, ModelFamily family, List<ShardRecord> records) {
    Map<String, Unit> units = new HashMap<>();
    Map<String, Member> members = new HashMap<>();
    for (OutputShard shard : plan.shards()) {
      for (Unit unit : shard.units()) {
        for (Member member : unit.members()) {
          units.put(member.module(), unit);
          members.put(member.module(), member);
        }
      }
    }

    List<LayerRow> rows = new ArrayList<>();
    for (ShardRecord record : records) {
      for (LayerError layer : record.layers()) {
        rows.add(LayerRow.of(
            layer, members.get(layer.module()).weight(), units.get(layer.module()).scheme(), family));
      }
    }

    return rows;
  }

  private static Report.Summary summary(
      List<LayerRow> rows, Long allParameters, Long bytesIn, long bytesOut, VerificationResult verified) {
    double error = Kind.relativeError(rows);
    return new Report.Summary(
        rows.size(),
        rows.stream().mapToLong(row -> row.rows() * row.cols()).sum(),
        allParameters,
        bytesIn,
        bytesOut,
        error,
        error > 0 ? Double.valueOf(-20 * Math.log10(error)) : null,
        rows.stream().filter(LayerRow::outlier).count(),
        verified == null ? null : Long.valueOf(verified.differenceCount()),
        verified == null ? null : Long.valueOf(verified.copies()),
        verified == null ? null : Long.valueOf(verified.layers().stream().filter(LayerCheck::sampled).count()));
  }

  private static List<LayerRow> outliers(List<LayerRow> rows) {
    return Outliers.of(rows).stream().limit(Report.OUTLIERS).toList();
  }

  private static Map<String, String> options(String family, PlanOptions options) {
    Map<String, String> all = new LinkedHashMap<>();
    all.put("family", family);
    all.put("layout", options.layout());
    all.put("targets", options.targets());
    all.put("scale search", options.scaleSearch());
    all.put("activations", options.weightOnly() ? "high precision (W4A16)" : "NVFP4 (W4A4)");
    return all;
  }

  private static Map<String, Long> events(ExceptionalEvents events) {
    return JSON.convertValue(events, new TypeReference<LinkedHashMap<String, Long>>() {});
  }

  /** {@code report.json}. */
  public byte[] json() {
    try {
      return JSON.writeValueAsBytes(report);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("Cannot write a report as JSON", e);
    }
  }

  /** What the page draws: the report, and figures that are too many to be read. */
  ObjectNode pageData() {
    ObjectNode data = JSON.valueToTree(report);
    data.set("expertErrors", JSON.valueToTree(HeatMap.ofExperts(rows)));
    data.set("otherErrors", JSON.valueToTree(HeatMap.ofOthers(rows)));
    data.set("histogram", JSON.valueToTree(Histogram.of(rows)));
    if (load != null) {
      data.set("tokens", JSON.valueToTree(load.heatMap()));
    }

    return data;
  }

  /** The quantized layers. */
  List<LayerRow> rows() {
    return rows;
  }

  /** What may be worse than it looks for a terminal, a line each; the empty text if there is nothing. */
  public String warningText() {
    StringBuilder text = new StringBuilder();
    report.warnings().forEach(warning -> text.append(String.format("Warning: %s%n", warning)));
    return text.toString();
  }

  /** Layers far from others of their kind for a terminal, the worst first; the empty text if there is none. */
  public String outlierText() {
    StringBuilder text = new StringBuilder();
    for (LayerRow row : Outliers.of(rows).stream().limit(NAMED).toList()) {
      Kind kind = report.kinds().stream()
          .filter(each -> each.role().equals(row.role()) && each.projection().equals(row.projection()))
          .findFirst()
          .orElseThrow();
      text.append(String.format(
          Locale.ROOT, "Outlier: %s has a relative error of %.4f, the median of its kind is %.4f%n",
          row.module(), row.relativeError(), kind.median()));
    }

    long more = report.summary().outliers() - NAMED;
    return more > 0 ? text + String.format("… and %d more%n", more) : text.toString();
  }
}
