package org.sparkfp4.jobs.synthetic;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** A file of a synthetic checkpoint and its tensors in the order of their bytes. */
record SyntheticShard(String file, List<SyntheticTensor> tensors) implements Serializable {
  SyntheticShard {
    tensors = List.copyOf(tensors);
  }

  long dataBytes() {
    return tensors.stream().mapToLong(SyntheticTensor::bytes).sum();
  }

  /**
   * Fills shards one after another, as publishers do: what belongs together may fall apart at the cuts.
   *
   * @param limit largest data section of a shard, in bytes; a tensor larger than that has a shard of its own
   */
  static List<SyntheticShard> pack(List<SyntheticTensor> tensors, long limit) {
    List<List<SyntheticTensor>> groups = new ArrayList<>();
    long filled = 0;
    for (SyntheticTensor tensor : tensors) {
      if (groups.isEmpty() || filled + tensor.bytes() > limit) {
        groups.add(new ArrayList<>());
        filled = 0;
      }

      groups.get(groups.size() - 1).add(tensor);
      filled += tensor.bytes();
    }

    List<SyntheticShard> shards = new ArrayList<>();
    for (List<SyntheticTensor> group : groups) {
      String file = String.format("model-%05d-of-%05d.safetensors", shards.size() + 1, groups.size());
      shards.add(new SyntheticShard(file, group));
    }

    return shards;
  }
}
