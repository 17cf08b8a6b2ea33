package org.sparkfp4.verify;

import java.io.IOException;
import java.io.InputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.safetensors.ChildPath;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Verifies a shard of the quantized checkpoint, on an executor. */
final class ShardVerifier implements Function<ShardTask, ShardFindings> {
  private static final long serialVersionUID = 1L;

  /** Differences of one shard that are put in words. */
  private static final int DESCRIBED = 100;

  private static final int PIECE = 1 << 20;

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

      LayerVerifier layers = new LayerVerifier(sourceReader, quantizedReader, claim, differences);
      for (QuantizedLayer layer : task.layers()) {
        LayerCheck check = layers.verify(layer);
        if (check != null) {
          checks.add(check);
        }
      }
    }

    return new ShardFindings(task.length(), checks, differences);
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
      String found = sha256(fs, path);
      if (!found.equals(task.sha256())) {
        differences.add("Shard " + task.file() + " has the SHA-256 " + found + ", in the manifest it is "
            + task.sha256());
      }
    }
  }

  private static String sha256(FileSystem fs, Path path) throws IOException {
    MessageDigest digest;
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find SHA-256, which every Java platform must have", e);
    }

    byte[] piece = new byte[PIECE];
    try (InputStream in = fs.open(path)) {
      for (int n = in.read(piece); n >= 0; n = in.read(piece)) {
        digest.update(piece, 0, n);
      }
    }

    return HexFormat.of().formatHex(digest.digest());
  }
}
