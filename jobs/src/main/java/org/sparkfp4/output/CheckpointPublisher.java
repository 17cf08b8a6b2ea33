package org.sparkfp4.output;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.layouts.IndexFile;
import org.sparkfp4.layouts.ModelCard;
import org.sparkfp4.layouts.RequantizedBlocks;
import org.sparkfp4.layouts.RoleErrors;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.QuantizationPlan;

/** Turns finished shards into a checkpoint: everything beside them, and at last the index. */
public final class CheckpointPublisher {
  private final OutputFolder output;
  private final Checkpoint source;
  private final ModelFamily family;
  private final QuantizationPlan plan;
  private final Layout layout;
  private final String producer;

  /** {@code producer} is the product's name and version. */
  public CheckpointPublisher(
      OutputFolder output,
      Checkpoint source,
      ModelFamily family,
      QuantizationPlan plan,
      Layout layout,
      String producer) {
    this.output = output;
    this.source = source;
    this.family = family;
    this.plan = plan;
    this.layout = layout;
    this.producer = producer;
  }

  /**
   * Writes what stands beside the shards, as {@link PublishedFiles} does.
   *
   * @param records the record of every shard of the plan
   * @param checksums CRC-32C of each source file
   * @throws IOException if a shard is not as planned: nothing is published then
   */
  public void publish(
      List<ShardRecord> records, Map<String, String> checksums, OutputLock lock, Configuration conf)
      throws IOException {
    requireComplete(records);
    new WrittenShards(output).require(plan, records);
    output.removeStrayShards(plan);
    PublishedFiles files = new PublishedFiles(output, source, conf);
    files.publish(
        layout.configs((ObjectNode) source.config(), plan),
        modelCard(records, files.sourceCard()),
        IndexFile.of(plan),
        (names, digests) -> new Manifest(
            producer, plan.fingerprint(), plan.input(), plan.family(), plan.options(), plan.sources(),
            records.stream().map(ShardRecord::withoutSource).toList(), names, checksums, digests, TensorSchemes.of(plan),
            ExceptionalEvents.of(plan, records)),
        lock);
  }

  private String modelCard(List<ShardRecord> records, String sourceCard) {
    RoleErrors errors = new RoleErrors(family);
    records.stream()
        .flatMap(record -> record.layers().stream())
        .forEach(layer -> errors.add(layer.module(), layer.sumSquares(), layer.squaredError()));
    long requantized = records.stream()
        .flatMap(record -> record.layers().stream())
        .mapToLong(LayerError::requantized)
        .sum();
    return ModelCard.text(
        PlanSummary.of(plan, family), plan.fingerprint(), source.config(), sourceCard, producer, errors.list(),
        RequantizedBlocks.of(plan, requantized));
  }

  private void requireComplete(List<ShardRecord> records) {
    if (records.size() != plan.shards().size()) {
      throw new IllegalStateException(
          "Cannot publish " + output.path() + ": " + records.size() + " shards are finished, the plan has "
              + plan.shards().size());
    }
  }
}
