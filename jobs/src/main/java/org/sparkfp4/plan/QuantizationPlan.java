package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.List;
import java.util.Objects;
import org.sparkfp4.checkpoint.SourceFile;

/**
 * What a run of {@code quantize} does, made from headers and configuration alone.
 *
 * @param fingerprint SHA-256 over everything that the output's bytes depend on: the byte-format version, the options,
 *     the source files with their lengths, modification times and headers, the source's config.json
 * @param input the source checkpoint's folder, a qualified path
 * @param options the options that the bytes depend on
 * @param family name of the model family
 * @param slabBytes source bytes of a unit above which it is cut by rows
 * @param sources the source files that are read
 * @param shards the output's shards
 * @param kept why each linear layer that is not quantized stays as it is, for the exclude lists and the reader
 * @param dropped tensors of the source that describe stored-quantized weights, beside the scales, and are not written
 * @param importance what a weighted search weighs by; null for the others
 */
public record QuantizationPlan(
    String fingerprint,
    String input,
    PlanOptions options,
    String family,
    long slabBytes,
    List<SourceFile> sources,
    List<OutputShard> shards,
    List<KeptModule> kept,
    List<DroppedTensor> dropped,
    PlannedImportance importance) {
  public QuantizationPlan {
    sources = List.copyOf(sources);
    shards = List.copyOf(shards);
    kept = List.copyOf(kept);
    dropped = List.copyOf(dropped);
  }

  /** The formats of the source in which modules stay, in the order of the modules. */
  @JsonIgnore
  public List<KeptFormat> keptFormats() {
    return kept.stream().map(KeptModule::format).filter(Objects::nonNull).distinct().toList();
  }

  /** A plan without statistics. */
  public QuantizationPlan(
      String fingerprint,
      String input,
      PlanOptions options,
      String family,
      long slabBytes,
      List<SourceFile> sources,
      List<OutputShard> shards,
      List<KeptModule> kept,
      List<DroppedTensor> dropped) {
    this(fingerprint, input, options, family, slabBytes, sources, shards, kept, dropped, null);
  }

  /** The same plan with what a weighted search weighs by; its fingerprint is another. */
  public QuantizationPlan withImportance(PlannedImportance known) {
    return new QuantizationPlan(
        Fingerprint.weighed(fingerprint, known), input, options, family, slabBytes, sources, shards, kept, dropped,
        known);
  }

  /** Names of the units that a weighted search sweeps without weights, as there are no statistics of their input. */
  public List<String> unweightedUnits() {
    return importance == null
        ? List.of()
        : shards.stream()
            .flatMap(shard -> shard.units().stream())
            .filter(unit -> !importance.tensors().containsKey(unit.id()))
            .map(Unit::name)
            .toList();
  }
}
