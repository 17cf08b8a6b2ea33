package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.json.JsonReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Utf8Json;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * A folder with a model's weights, as its index and headers describe it. No tensor's bytes are read.
 *
 * <p>Index and headers agree: every tensor of the index is in the shard that the index names, and the shards hold no
 * other.
 */
public final class Checkpoint {
  public static final String CONFIG = "config.json";

  /** Where checkpoints of ModelOpt say a second time how they are quantized. */
  public static final String QUANT_CONFIG = "hf_quant_config.json";

  // Python writes infinities and NaN without quotes, and some models' config.json have them
  private static final ObjectMapper JSON = JsonMapper.builder()
      .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY, DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
      .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
      .build();

  private final Path path;
  private final JsonNode config;
  private final List<FileStatus> shards;
  private final List<String> strayShards;
  private final List<FileStatus> sideFiles;
  private final List<LocatedTensor> tensors;
  private final Map<String, LocatedTensor> byName = new HashMap<>();

  private Checkpoint(
      Path path,
      JsonNode config,
      List<FileStatus> shards,
      List<String> strayShards,
      List<FileStatus> sideFiles,
      List<LocatedTensor> tensors) {
    this.path = path;
    this.config = config;
    this.shards = List.copyOf(shards);
    this.strayShards = List.copyOf(strayShards);
    this.sideFiles = List.copyOf(sideFiles);
    this.tensors = List.copyOf(tensors);
    for (LocatedTensor tensor : tensors) {
      byName.put(tensor.name(), tensor);
    }
  }

  /**
   * Opens a checkpoint: a folder, or a single {@code .safetensors} file, which is then all of it.
   *
   * @throws InvalidCheckpointException when there is none, or index and shards do not agree
   * @throws org.sparkfp4.safetensors.InvalidSafetensorsException when a shard is damaged
   */
  public static Checkpoint open(Configuration configuration, String folder) throws IOException {
    Path given = new Path(folder);
    FileSystem fileSystem = RawFileSystem.of(given, configuration);
    FileStatus status;
    try {
      status = fileSystem.getFileStatus(given);
    } catch (FileNotFoundException e) {
      throw new InvalidCheckpointException(given, "there is no such folder or file", e);
    }

    Path path = fileSystem.makeQualified(given);
    return status.isDirectory() ? openFolder(fileSystem, path) : openFile(fileSystem, status, path);
  }

  /**
   * Opens each safetensors file of a folder by itself: files that make no checkpoint together, and may name a tensor
   * more than once. Of a single file, that one.
   *
   * @throws InvalidCheckpointException when there is none
   */
  public static List<Checkpoint> openFiles(Configuration configuration, String folder) throws IOException {
    Path given = new Path(folder);
    FileSystem fileSystem = RawFileSystem.of(given, configuration);
    if (!fileSystem.exists(given) || !fileSystem.getFileStatus(given).isDirectory()) {
      return List.of(open(configuration, folder));
    }

    Path path = fileSystem.makeQualified(given);
    List<FileStatus> files = Folder.list(fileSystem, path).safetensors();
    List<SafetensorsHeader> headers = HeaderReader.read(fileSystem, files);
    List<Checkpoint> checkpoints = new ArrayList<>();
    for (int i = 0; i < files.size(); i++) {
      List<FileStatus> file = files.subList(i, i + 1);
      checkpoints.add(new Checkpoint(
          path, MissingNode.getInstance(), file, List.of(), List.of(), locate(file, headers.subList(i, i + 1))));
    }

    return checkpoints;
  }

  private static Checkpoint openFolder(FileSystem fileSystem, Path path) throws IOException {
    Folder folder = Folder.list(fileSystem, path);
    CheckpointIndex index = folder.has(CheckpointIndex.NAME) ? CheckpointIndex.read(fileSystem, path) : null;
    List<FileStatus> shards = folder.shards(index);
    List<SafetensorsHeader> headers = HeaderReader.read(fileSystem, shards);
    List<LocatedTensor> tensors = locate(shards, headers);
    if (index != null) {
      IndexCheck.check(path, index, tensors);
    }

    JsonNode config = folder.has(CONFIG) ? readConfig(fileSystem, path) : MissingNode.getInstance();
    return new Checkpoint(path, config, shards, folder.strays(shards), folder.sideFiles(), tensors);
  }

  private static Checkpoint openFile(FileSystem fileSystem, FileStatus file, Path path) throws IOException {
    if (!Folder.isSafetensors(path.getName())) {
      throw new InvalidCheckpointException(path, "it is no .safetensors file and no folder");
    }

    List<FileStatus> shards = List.of(file);
    List<LocatedTensor> tensors = locate(shards, HeaderReader.read(fileSystem, shards));
    return new Checkpoint(path.getParent(), MissingNode.getInstance(), shards, List.of(), List.of(), tensors);
  }

  private static List<LocatedTensor> locate(List<FileStatus> shards, List<SafetensorsHeader> headers) {
    List<LocatedTensor> tensors = new ArrayList<>();
    for (int i = 0; i < shards.size(); i++) {
      String file = shards.get(i).getPath().getName();
      long dataStart = headers.get(i).dataStart();
      for (TensorInfo tensor : headers.get(i).tensors()) {
        tensors.add(new LocatedTensor(
            tensor.name(), tensor.dtype(), tensor.shape(), file, dataStart + tensor.begin(), tensor.length()));
      }
    }

    return tensors;
  }

  private static JsonNode readConfig(FileSystem fileSystem, Path folder) throws IOException {
    try (InputStream in = fileSystem.open(new Path(folder, CONFIG))) {
      return parseConfig(folder, in);
    }
  }

  /**
   * Parses a config.json.
   *
   * @throws InvalidCheckpointException when it is no JSON object
   */
  public static JsonNode parseConfig(Object folder, InputStream in) throws IOException {
    try {
      JsonNode config = JSON.readTree(Utf8Json.reader(in));
      if (!config.isObject()) {
        throw new InvalidCheckpointException(folder, CONFIG + " is no JSON object");
      }

      return config;
    } catch (JsonProcessingException e) {
      throw new InvalidCheckpointException(folder, CONFIG + " is no JSON: " + e.getOriginalMessage(), e);
    }
  }

  /** The folder, a qualified path. */
  public Path path() {
    return path;
  }

  /** The model's {@code config.json}, an object; a {@link MissingNode} where there is none. */
  public JsonNode config() {
    return config;
  }

  /** All tensors, in the order of file name and place in the file. */
  public List<LocatedTensor> tensors() {
    return tensors;
  }

  /** The tensor of that name. */
  public Optional<LocatedTensor> tensor(String name) {
    return Optional.ofNullable(byName.get(name));
  }

  /** The files that hold the tensors, by name. */
  public List<FileStatus> shards() {
    return shards;
  }

  /** The same files as a plan records them. */
  public List<SourceFile> sourceFiles() {
    return shards.stream()
        .map(shard -> new SourceFile(shard.getPath().getName(), shard.getLen(), shard.getModificationTime()))
        .toList();
  }

  /** Names of {@code .safetensors} files in the folder that the index does not name; they are not read. */
  public List<String> strayShards() {
    return strayShards;
  }

  /**
   * The other files that go with the weights, by name, {@value #CONFIG} among them. Left out are weights in other
   * formats, the index, {@code hf_quant_config.json}, {@code README.md}, git's files and sub-folders.
   */
  public List<FileStatus> sideFiles() {
    return sideFiles;
  }
}
