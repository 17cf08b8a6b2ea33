package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.List;

/**
 * What one task verifies: a shard of the quantized checkpoint.
 *
 * @param file its name
 * @param length its bytes
 * @param sha256 the digest that the manifest has for it, or null
 * @param copies its tensors that must be as in the source
 * @param dequantized its tensors that the source stores as codes
 * @param layers the layers whose codes it holds
 */
record ShardTask(
    String file,
    long length,
    String sha256,
    List<CopiedTensor> copies,
    List<DequantizedTensor> dequantized,
    List<QuantizedLayer> layers)
    implements Serializable {
  ShardTask {
    copies = List.copyOf(copies);
    dequantized = List.copyOf(dequantized);
    layers = List.copyOf(layers);
  }
}
