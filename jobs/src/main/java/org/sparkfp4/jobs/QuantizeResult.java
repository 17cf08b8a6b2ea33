package org.sparkfp4.jobs;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.layouts.RequantizedBlocks;
import org.sparkfp4.output.LayerError;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;

/**
 * What {@code quantize} says at its end.
 *
 * @param shards shards of the checkpoint
 * @param bytes bytes of its tensors
 * @param relativeError relative Frobenius error over all quantized layers together
 * @param worst the layer with the largest relative error, or null when none was quantized
 * @param cast how much of an MXFP4 source is exact
 */
record QuantizeResult(int shards, long bytes, double relativeError, LayerError worst, RequantizedBlocks cast) {
  static QuantizeResult of(QuantizationPlan plan, List<ShardRecord> records) {
    List<LayerError> layers = records.stream().flatMap(record -> record.layers().stream()).toList();
    double sum = layers.stream().mapToDouble(LayerError::sumSquares).sum();
    double error = layers.stream().mapToDouble(LayerError::squaredError).sum();
    return new QuantizeResult(
        records.size(),
        plan.shards().stream().mapToLong(OutputShard::dataBytes).sum(),
        sum == 0 ? 0 : Math.sqrt(error / sum),
        layers.stream().max(Comparator.comparingDouble(LayerError::relativeError)).orElse(null),
        RequantizedBlocks.of(plan, layers.stream().mapToLong(LayerError::requantized).sum()));
  }

  /** The same of an output in another layout than the shards': its files, and bytes of their tensors. */
  QuantizeResult as(int files, long tensorBytes) {
    return new QuantizeResult(files, tensorBytes, relativeError, worst, cast);
  }

  String text(Path folder) {
    String exactness =
        worst == null
            ? ""
            : String.format(
                Locale.ROOT, "; relative error %.4f, at worst %.4f in %s",
                relativeError, worst.relativeError(), worst.module());
    String exact =
        cast.all() == 0
            ? ""
            : String.format(
                Locale.ROOT, "; %,d of %,d blocks cast exactly from MXFP4",
                cast.all() - cast.requantized(), cast.all());
    return String.format(Locale.ROOT, "%s: %d %s, %,d bytes%s%s",
        folder, shards, shards == 1 ? "shard" : "shards", bytes, exactness, exact);
  }
}
