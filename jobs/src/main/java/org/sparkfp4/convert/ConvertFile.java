package org.sparkfp4.convert;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * A file of the output, every byte's place known before the first byte is read.
 *
 * @param name its name
 * @param items its contents, in order
 * @param byParts whether each item is written by itself and put together with the others: a file that a runtime wants to
 *     be one, however large
 */
record ConvertFile(String name, List<ConvertItem> items, boolean byParts) implements Serializable {
  ConvertFile {
    items = List.copyOf(items);
  }

  /** Bytes of its data. */
  long dataBytes() {
    return items.stream().mapToLong(ConvertItem::length).sum();
  }

  /** Its tensors, in the order of their bytes. */
  List<TensorInfo> tensors() {
    return items.stream().flatMap(item -> item.outputs().stream()).toList();
  }
}
