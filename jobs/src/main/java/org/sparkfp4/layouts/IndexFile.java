package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashMap;
import java.util.Map;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;

/** The content of model.safetensors.index.json. */
public final class IndexFile {
  private IndexFile() {}

  /** The index of a plan's output: every tensor and its shard, and the bytes of all tensors. */
  public static ObjectNode of(QuantizationPlan plan) {
    Map<String, String> shards = new LinkedHashMap<>();
    for (OutputShard shard : plan.shards()) {
      for (ShardItem item : shard.items()) {
        item.outputs().forEach(tensor -> shards.put(tensor.name(), shard.file()));
      }
    }

    return new CheckpointIndex(shards).json(plan.shards().stream().mapToLong(OutputShard::dataBytes).sum());
  }
}
