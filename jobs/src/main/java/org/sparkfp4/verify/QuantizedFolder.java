package org.sparkfp4.verify;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.io.InputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.safetensors.ChildPath;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.Utf8Json;
import org.sparkfp4.sink.Manifest;
import org.sparkfp4.sink.StagingFolder;

/** The JSON files beside the shards of a quantized checkpoint. */
final class QuantizedFolder {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path path;
  private final FileSystem fs;

  private QuantizedFolder(Path path, FileSystem fs) {
    this.path = path;
    this.fs = fs;
  }

  /**
   * The folder.
   *
   * @throws IOException if there is none, or a run has not finished it
   */
  static QuantizedFolder open(String folder, Configuration conf) throws IOException {
    Path path = new Path(folder);
    FileSystem fs = RawFileSystem.of(path, conf);
    if (!fs.exists(path)) {
      throw new IOException("Cannot verify " + folder + ": there is no such folder");
    }

    QuantizedFolder opened = new QuantizedFolder(fs.makeQualified(path), fs);
    if (!opened.has(CheckpointIndex.NAME) && opened.has(StagingFolder.NAME)) {
      throw new IOException(
          "Cannot verify " + folder + ": a run has not finished it; start quantize again with the same options");
    }

    return opened;
  }

  Path path() {
    return path;
  }

  /** The manifest, or null where another producer made the checkpoint. */
  Manifest manifest() throws IOException {
    JsonNode manifest = json(Manifest.FILE);
    try {
      return manifest.isMissingNode() ? null : JSON.treeToValue(manifest, Manifest.class);
    } catch (JsonProcessingException e) {
      throw new IOException(
          "Cannot verify " + path + ": " + Manifest.FILE + " is no manifest: " + e.getOriginalMessage(), e);
    }
  }

  /** What the index says all tensors take, a missing node where it does not say. */
  JsonNode totalSize() throws IOException {
    return json(CheckpointIndex.NAME).path("metadata").path("total_size");
  }

  boolean has(String file) throws IOException {
    return fs.exists(ChildPath.of(path, file));
  }

  /** Content of a file, a missing node where there is none. */
  JsonNode json(String file) throws IOException {
    if (!has(file)) {
      return MissingNode.getInstance();
    }

    try (InputStream in = fs.open(ChildPath.of(path, file))) {
      return JSON.readTree(Utf8Json.reader(in));
    } catch (JsonProcessingException e) {
      throw new IOException("Cannot verify " + path + ": " + file + " is no JSON: " + e.getOriginalMessage(), e);
    }
  }
}
