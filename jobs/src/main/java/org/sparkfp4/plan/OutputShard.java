package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.List;

/**
 * A file of the output, every byte's place known before the first byte is read.
 *
 * @param index number of the shard, from 0
 * @param file its name, {@code model-%05d-of-%05d.safetensors}
 * @param dataBytes bytes of its data section
 * @param items its contents, in order
 */
public record OutputShard(int index, String file, long dataBytes, List<ShardItem> items) {
  public OutputShard {
    items = List.copyOf(items);
  }

  /** The units of the shard, in the order of their bytes. */
  @JsonIgnore
  public List<Unit> units() {
    return items.stream()
        .filter(ShardItem.Quantized.class::isInstance)
        .map(item -> ((ShardItem.Quantized) item).unit())
        .toList();
  }

  /** Bytes of the source's tensors that the shard is made from. */
  public long sourceBytes() {
    return items.stream().mapToLong(ShardItem::sourceBytes).sum();
  }
}
