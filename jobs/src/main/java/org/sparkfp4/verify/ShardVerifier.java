package org.sparkfp4.verify;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.output.FileDigest;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Verifies a shard of the quantized checkpoint, on an executor. */
final class ShardVerifier implements Function<ShardTask, ShardFindings> {
  private static final long serialVersionUID = 1L;

  /** Differences of one shard that are put in words. */
  private static final int DESCRIBED = 100;

  private final String source;
  private final String quantized;
  private final ScaleClaim claim;
  private final SerializableConfiguration configuration;

  ShardVerifier(String source, String quantized, ScaleClaim claim, SerializableConfiguration configuration) {
    this.source = source;
    this.quantized = quantized;
    this.claim = claim;
    this.configuration = configuration;
  }

  @Override
  public ShardFindings call(ShardTask task) throws IOException {
    Configuration conf = configuration.value();
    Differences differences = new Differences(DESCRIBED);
    verifyFile(task, conf, differences);
    List<LayerCheck> checks = new ArrayList<>();
    CodeCounts counts = new CodeCounts();
    try (TensorReader sourceReader = new TensorReader(source, conf);
        TensorReader quantizedReader = new TensorReader(quantized, conf)) {
      CopyVerifier copies = new CopyVerifier(sourceReader, quantizedReader, differences);
      for (CopiedTensor copy : task.copies()) {
        copies.verify(copy);
      }

      DequantizedVerifier dequantized = new DequantizedVerifier(sourceReader, quantizedReader, differences);
      for (DequantizedTensor tensor : task.dequantized()) {
        dequantized.verify(tensor);
      }

      LayerVerifier layers = new LayerVerifier(sourceReader, quantizedReader, claim, differences, counts);
      for (QuantizedLayer layer : task.layers()) {
        LayerCheck check = layers.verify(layer);
        if (check != null) {
          checks.add(check);
        }
      }
    }

    return new ShardFindings(task.length(), checks, counts, differences);
  }

  private void verifyFile(ShardTask task, Configuration conf, Differences differences) throws IOException {
    Path path = ChildPath.of(new Path(quantized), task.file());
    FileSystem fs = RawFileSystem.of(path, conf);
    FileStatus status = fs.getFileStatus(path);
    Map<String, String> metadata = SafetensorsHeader.read(fs, status).metadata();
    if (!metadata.entrySet().containsAll(SafetensorsHeader.FORMAT_PT.entrySet())) {
      differences.add("Shard " + task.file() + " has no format \"pt\" in its metadata; some readers refuse it");
    }

    if (task.sha256() != null) {
      String found;
      try (InputStream in = fs.open(path)) {
        found = FileDigest.copy(task.file(), in, OutputStream.nullOutputStream()).sha256();
      }

      if (!found.equals(task.sha256())) {
        differences.add("Shard " + task.file() + " has the SHA-256 " + found + ", in the manifest it is "
            + task.sha256());
      }
    }
  }
}
