package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.safetensors.TensorInfo;

/** The content of model.safetensors.index.json. */
public final class IndexFile {
  private IndexFile() {}

  /** The index of a plan's output: every tensor and its shard, and the bytes of all tensors. */
  public static ObjectNode of(QuantizationPlan plan) {
    ObjectNode index = JsonNodeFactory.instance.objectNode();
    index.putObject("metadata").put("total_size", plan.shards().stream().mapToLong(OutputShard::dataBytes).sum());
    ObjectNode weightMap = index.putObject("weight_map");
    for (OutputShard shard : plan.shards()) {
      for (ShardItem item : shard.items()) {
        for (TensorInfo tensor : item.outputs()) {
          weightMap.put(tensor.name(), shard.file());
        }
      }
    }

    return index;
  }
}
