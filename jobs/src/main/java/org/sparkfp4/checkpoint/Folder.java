package org.sparkfp4.checkpoint;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** The files directly in a checkpoint's folder, by their parts. */
record Folder(Path path, List<FileStatus> files) {
  private static final String SAFETENSORS = ".safetensors";
  private static final String LONE_SHARD = "model.safetensors";
  // weights of other formats, and what belongs to the place that the checkpoint came from
  private static final List<String> LEFT_BEHIND_ENDINGS =
      List.of(".bin", ".bin.index.json", ".pt", ".pth", ".gguf", ".crc");

  // what describes a quantized checkpoint that this one once was or was next to; an output has its own
  private static final List<String> OF_ANOTHER_CHECKPOINT =
      List.of(
          Checkpoint.QUANT_CONFIG, "sparkfp4-manifest.json", "sparkfp4-manifest.json.sha256", "sparkfp4-report.json",
          "_sparkfp4");

  static Folder list(FileSystem fileSystem, Path path) throws IOException {
    FileStatus[] listed;
    try {
      listed = fileSystem.listStatus(path);
    } catch (FileNotFoundException e) {
      throw new InvalidCheckpointException(path, "there is no such folder", e);
    }

    List<FileStatus> files = Arrays.stream(listed)
        .filter(FileStatus::isFile)
        .sorted(Comparator.comparing((FileStatus file) -> file.getPath().getName()))
        .toList();
    return new Folder(path, files);
  }

  static boolean isSafetensors(String name) {
    return name.endsWith(SAFETENSORS);
  }

  boolean has(String name) {
    return files.stream().anyMatch(file -> file.getPath().getName().equals(name));
  }

  /** All safetensors files, whatever an index says. */
  List<FileStatus> safetensors() throws InvalidCheckpointException {
    List<FileStatus> found = files.stream().filter(file -> file.getPath().getName().endsWith(SAFETENSORS)).toList();
    if (found.isEmpty()) {
      throw new InvalidCheckpointException(path, "it has no .safetensors file");
    }

    return found;
  }

  /** The shards that the index names, or the only one where there is no index; by name. */
  List<FileStatus> shards(CheckpointIndex index) throws InvalidCheckpointException {
    Map<String, FileStatus> byName = new TreeMap<>();
    for (FileStatus file : files) {
      byName.put(file.getPath().getName(), file);
    }

    if (index == null) {
      return List.of(byName.get(loneShard(byName)));
    }

    List<FileStatus> shards = new ArrayList<>();
    List<String> missing = new ArrayList<>();
    for (String name : new TreeSet<>(index.weightMap().values())) {
      FileStatus shard = byName.get(name);
      if (shard == null) {
        missing.add(name);
      } else {
        shards.add(shard);
      }
    }

    if (!missing.isEmpty()) {
      String tensor = index.weightMap().entrySet().stream()
          .filter(entry -> entry.getValue().equals(missing.get(0)))
          .map(Map.Entry::getKey)
          .findFirst()
          .orElseThrow();
      throw new InvalidCheckpointException(
          path,
          CheckpointIndex.NAME + " names " + missing.get(0) + " (tensor " + tensor
              + "), which is not in the folder; " + missing.size() + " of " + (missing.size() + shards.size())
              + " shards missing, download the checkpoint again");
    }

    return shards;
  }

  private String loneShard(Map<String, FileStatus> byName) throws InvalidCheckpointException {
    List<String> candidates = byName.keySet().stream().filter(name -> name.endsWith(SAFETENSORS)).toList();
    if (candidates.isEmpty()) {
      throw new InvalidCheckpointException(path, "it has no .safetensors file");
    }

    if (candidates.contains(LONE_SHARD)) {
      return LONE_SHARD;
    }

    if (candidates.size() > 1) {
      throw new InvalidCheckpointException(
          path,
          "it has " + candidates.size() + " .safetensors files, " + candidates.get(0) + " and on, but no "
              + CheckpointIndex.NAME + " to say which of them belong together; download the index too");
    }

    return candidates.get(0);
  }

  /** Names of {@code .safetensors} files that are none of the shards. */
  List<String> strays(List<FileStatus> shards) {
    var used = shards.stream().map(shard -> shard.getPath().getName()).collect(Collectors.toSet());
    return files.stream()
        .map(file -> file.getPath().getName())
        .filter(name -> name.endsWith(SAFETENSORS) && !used.contains(name))
        .toList();
  }

  /** Files that go with the weights: configuration, tokenizer, licence, code. */
  List<FileStatus> sideFiles() {
    return files.stream().filter(file -> isSideFile(file.getPath().getName())).toList();
  }

  private static boolean isSideFile(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    return !lower.endsWith(SAFETENSORS)
        && !name.equals(CheckpointIndex.NAME)
        && !lower.equals("readme.md")
        && !OF_ANOTHER_CHECKPOINT.contains(name)
        && !lower.startsWith(".git")
        && LEFT_BEHIND_ENDINGS.stream().noneMatch(lower::endsWith);
  }
}
