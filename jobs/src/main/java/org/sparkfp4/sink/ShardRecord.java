package org.sparkfp4.sink;

import java.io.Serializable;
import java.util.List;
import java.util.Objects;

/**
 * What a task leaves behind when its shard stands under its final name: proof that the shard is finished.
 *
 * @param shard index of the shard in the plan
 * @param file its name
 * @param length its bytes
 * @param sha256 SHA-256 of its bytes, lower-case hexadecimal
 * @param fingerprint the plan's
 * @param layers how exact each quantized layer of the shard is
 * @param source what was read for it, with checksums; empty in a manifest, which has those of whole files
 */
public record ShardRecord(
    int shard,
    String file,
    long length,
    String sha256,
    String fingerprint,
    List<LayerError> layers,
    List<SourcePiece> source)
    implements Serializable {
  public ShardRecord {
    Objects.requireNonNull(file, "file");
    Objects.requireNonNull(fingerprint, "fingerprint");
    layers = List.copyOf(layers);
    source = source == null ? List.of() : List.copyOf(source);
  }

  /** The record without what was read. */
  ShardRecord withoutSource() {
    return new ShardRecord(shard, file, length, sha256, fingerprint, layers, List.of());
  }
}
