package org.sparkfp4.output;

import com.fasterxml.jackson.annotation.JsonIgnore;
import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.plan.PlanOptions;

/**
 * {@code sparkfp4-manifest.json}: where a finished checkpoint comes from and what it must consist of. Beside it lies
 * its own SHA-256, in the form that {@code sha256sum} reads.
 *
 * @param producer product and version
 * @param fingerprint the plan's
 * @param input the source checkpoint's folder
 * @param family the model family
 * @param options what was asked for
 * @param sources the files that were read
 * @param shards the shards that were written, with their SHA-256
 * @param files names of the other files that were written beside them, the index apart
 * @param checksums CRC-32C of each source file as it was when it was read, eight hexadecimal digits; empty in the
 *     manifest of a version that did not take them
 * @param digests of the files beside the shards, the index among them, the manifest and its own digest apart; likewise
 * @param tensors what became of the source's tensors; likewise
 * @param events what was not the rule; null likewise
 */
@JsonIgnoreProperties(ignoreUnknown = true)
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Manifest(
    String producer,
    String fingerprint,
    String input,
    String family,
    PlanOptions options,
    List<SourceFile> sources,
    List<ShardRecord> shards,
    List<String> files,
    Map<String, String> checksums,
    List<FileDigest> digests,
    List<TensorScheme> tensors,
    ExceptionalEvents events) {
  public static final String FILE = "sparkfp4-manifest.json";

  /** The file with the manifest's own digest. */
  public static final String DIGEST_FILE = FILE + ".sha256";

  public Manifest {
    Objects.requireNonNull(fingerprint, "fingerprint");
    Objects.requireNonNull(input, "input");
    Objects.requireNonNull(sources, "sources");
    Objects.requireNonNull(shards, "shards");
    Objects.requireNonNull(files, "files");
    sources = List.copyOf(sources);
    shards = List.copyOf(shards);
    files = List.copyOf(files);
    checksums = checksums == null ? Map.of() : new TreeMap<>(checksums);
    digests = digests == null ? List.of() : List.copyOf(digests);
    tensors = tensors == null ? List.of() : List.copyOf(tensors);
  }

  /** A manifest as versions wrote it that took no checksums and digests. */
  public Manifest(
      String producer,
      String fingerprint,
      String input,
      String family,
      PlanOptions options,
      List<SourceFile> sources,
      List<ShardRecord> shards,
      List<String> files) {
    this(producer, fingerprint, input, family, options, sources, shards, files, Map.of(), List.of(), List.of(), null);
  }

  /** Whether a conversion wrote the files: its sources are those of the checkpoint that it converted. */
  @JsonIgnore
  public boolean isConverted() {
    return shards.stream().anyMatch(shard -> shard.rounded() != null);
  }

  /** The line that {@link #DIGEST_FILE} has for a manifest of this content. */
  public static String digestLine(byte[] manifest) {
    return Sha256.hex(manifest) + "  " + FILE + "\n";
  }
}
