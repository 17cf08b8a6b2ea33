package org.sparkfp4.verify;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.progress.CountedTasks;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.Work;

/**
 * Holds every file of a checkpoint against its manifest, without a look at what they hold; the source's files too where
 * their folder is given. A file is a task.
 */
public final class ManifestVerification {
  private static final int DESCRIBED = 100;

  private final SparkSession spark;
  private final String folder;
  private final String source;

  /** {@code source} is the folder of the source, or null. */
  public ManifestVerification(SparkSession spark, String folder, String source) {
    this.spark = spark;
    this.folder = folder;
    this.source = source;
  }

  /**
   * Verifies the files.
   *
   * @param view of the progress; closed when all is read
   * @throws IOException if there is no manifest, or a file cannot be read
   */
  public ManifestResult run(ProgressView view) throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    Differences differences = new Differences(DESCRIBED);
    QuantizedFolder quantized = QuantizedFolder.open(folder, conf);
    Manifest manifest = quantized.manifest(differences);
    if (manifest == null && differences.count() == 0) {
      throw new IOException("Cannot verify " + folder + " by its manifest: it has no " + Manifest.FILE
          + "; leave --manifest out, and give --source");
    }

    if (manifest == null) {
      return new ManifestResult(List.of(), differences);
    }

    List<FileClaim> claims = new ArrayList<>(FileClaim.besideShards(quantized.path(), manifest));
    claims.addAll(FileClaim.shards(quantized.path(), manifest));
    if (source != null) {
      Path path = new Path(source);
      claims.addAll(FileClaim.sources(RawFileSystem.of(path, conf).makeQualified(path), manifest));
    }

    quantized.strayShards(manifest).forEach(stray -> differences.add(
        "Unexpected file " + stray + ": it is not in the manifest, but some runtimes load every .safetensors file"));
    List<VerifiedFile> files = verify(spark, claims, conf, view);
    files.forEach(file -> file.addTo(differences));
    return new ManifestResult(files, differences);
  }

  /** What became of each file. */
  static List<VerifiedFile> verify(SparkSession spark, List<FileClaim> claims, Configuration conf, ProgressView view) {
    return new CountedTasks(spark, view, Work.FILES_READ)
        .run(claims, new FileVerifier(new SerializableConfiguration(conf)), FileClaim::length);
  }
}
