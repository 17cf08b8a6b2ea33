package org.sparkfp4.sink;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.List;
import java.util.Objects;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.SourceFile;

/**
 * {@code sparkfp4-manifest.json}: where a finished checkpoint comes from and what it must consist of.
 *
 * @param producer product and version
 * @param fingerprint the plan's
 * @param input the source checkpoint's folder
 * @param family the model family
 * @param options what was asked for
 * @param sources the files that were read
 * @param shards the shards that were written, with their SHA-256
 * @param files names of the other files that were written beside them, the index apart
 */
@JsonIgnoreProperties(ignoreUnknown = true)
public record Manifest(
    String producer,
    String fingerprint,
    String input,
    String family,
    PlanOptions options,
    List<SourceFile> sources,
    List<ShardRecord> shards,
    List<String> files) {
  public static final String FILE = "sparkfp4-manifest.json";

  public Manifest {
    Objects.requireNonNull(fingerprint, "fingerprint");
    Objects.requireNonNull(input, "input");
    Objects.requireNonNull(sources, "sources");
    Objects.requireNonNull(shards, "shards");
    Objects.requireNonNull(files, "files");
    sources = List.copyOf(sources);
    shards = List.copyOf(shards);
    files = List.copyOf(files);
  }
}
