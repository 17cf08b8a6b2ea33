package org.sparkfp4.output;

import com.fasterxml.jackson.annotation.JsonInclude;
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
 * @param rounded what a conversion could not keep; null of other runs
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record ShardRecord(
    int shard,
    String file,
    long length,
    String sha256,
    String fingerprint,
    List<LayerError> layers,
    List<SourcePiece> source,
    RoundedScales rounded)
    implements Serializable {
  public ShardRecord {
    Objects.requireNonNull(file, "file");
    Objects.requireNonNull(sha256, "sha256");
    Objects.requireNonNull(fingerprint, "fingerprint");
    layers = List.copyOf(layers);
    source = source == null ? List.of() : List.copyOf(source);
  }

  /** The record of a run that quantizes. */
  public ShardRecord(
      int shard,
      String file,
      long length,
      String sha256,
      String fingerprint,
      List<LayerError> layers,
      List<SourcePiece> source) {
    this(shard, file, length, sha256, fingerprint, layers, source, null);
  }

  /** The record without what was read. */
  public ShardRecord withoutSource() {
    return new ShardRecord(shard, file, length, sha256, fingerprint, layers, List.of(), rounded);
  }

  /** The record with what a conversion could not keep. */
  public ShardRecord withRounded(RoundedScales scales) {
    return new ShardRecord(shard, file, length, sha256, fingerprint, layers, source, scales);
  }
}
