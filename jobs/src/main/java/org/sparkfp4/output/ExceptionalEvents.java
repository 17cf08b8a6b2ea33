package org.sparkfp4.output;

import java.util.List;
import java.util.function.ToLongFunction;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;

/**
 * How often a run met what is not the rule.
 *
 * @param zeroLayers quantized layers that are written as zeros, since all their weights are, or as good as
 * @param subnormalScales block scales below 2^-6, whose codes are coarser than others
 * @param largestScales block scales of 448, the largest that there is
 * @param requantizedBlocks blocks of an MXFP4 source that no exact cast could hold
 * @param keptModules modules with a matrix that stay in high precision
 * @param dequantizedTensors tensors that the source stores quantized and the output in BF16
 * @param droppedTensors tensors of the source that only describe how others are stored and are not written
 */
public record ExceptionalEvents(
    long zeroLayers,
    long subnormalScales,
    long largestScales,
    long requantizedBlocks,
    long keptModules,
    long dequantizedTensors,
    long droppedTensors) {
  /** Those of a plan whose every shard has a record. */
  public static ExceptionalEvents of(QuantizationPlan plan, List<ShardRecord> records) {
    return new ExceptionalEvents(
        sum(records, layer -> Nvfp4.isZero(layer.amax()) ? 1 : 0),
        sum(records, LayerError::subnormalScales),
        sum(records, LayerError::largestScales),
        sum(records, LayerError::requantized),
        plan.kept().size(),
        plan.shards().stream()
            .flatMap(shard -> shard.items().stream())
            .filter(ShardItem.Dequantized.class::isInstance)
            .count(),
        plan.dropped().size());
  }

  private static long sum(List<ShardRecord> records, ToLongFunction<LayerError> count) {
    return records.stream().flatMap(record -> record.layers().stream()).mapToLong(count).sum();
  }
}
