package org.sparkfp4.verify;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.files.Utf8Json;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.StagingFolder;

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

  /**
   * The manifest; null where another producer made the checkpoint. One whose own digest is not right is a difference,
   * and null too: nothing is held against it.
   */
  Manifest manifest(Differences differences) throws IOException {
    byte[] content = content(Manifest.FILE);
    byte[] digest = content(Manifest.DIGEST_FILE);
    if (digest != null && content == null) {
      differences.add("Missing file " + Manifest.FILE + ", whose digest is there");
      return null;
    }

    if (digest != null && !Arrays.equals(digest, Manifest.digestLine(content).getBytes(StandardCharsets.UTF_8))) {
      differences.add("File " + Manifest.FILE + " has the SHA-256 " + Sha256.hex(content)
          + ", which is not what " + Manifest.DIGEST_FILE + " says: one of them was changed");
      return null;
    }

    JsonNode json = json(Manifest.FILE);
    try {
      Manifest manifest = json.isMissingNode() ? null : JSON.treeToValue(json, Manifest.class);
      if (manifest != null && digest == null && !manifest.digests().isEmpty()) {
        differences.add("Missing file " + Manifest.DIGEST_FILE + ", which was written with the manifest");
      }

      return manifest;
    } catch (JsonProcessingException e) {
      throw new IOException(
          "Cannot verify " + path + ": " + Manifest.FILE + " is no manifest: " + e.getOriginalMessage(), e);
    }
  }

  /** Names of {@code .safetensors} files that are none of the manifest's shards. */
  List<String> strayShards(Manifest manifest) throws IOException {
    Set<String> known = manifest.shards().stream().map(ShardRecord::file).collect(Collectors.toSet());
    return Arrays.stream(fs.listStatus(path))
        .map(file -> file.getPath().getName())
        .filter(name -> name.endsWith(".safetensors") && !known.contains(name))
        .sorted()
        .toList();
  }

  private byte[] content(String file) throws IOException {
    if (!has(file)) {
      return null;
    }

    try (InputStream in = fs.open(ChildPath.of(path, file))) {
      return in.readAllBytes();
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
    byte[] content = content(file);
    if (content == null) {
      return MissingNode.getInstance();
    }

    try {
      return JSON.readTree(Utf8Json.reader(new ByteArrayInputStream(content)));
    } catch (JsonProcessingException e) {
      throw new IOException("Cannot verify " + path + ": " + file + " is no JSON: " + e.getOriginalMessage(), e);
    }
  }
}
