package org.sparkfp4.keys;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;
import org.sparkfp4.source.FileRanges;
import org.sparkfp4.source.SlabFile;

/** The safetensors files of an input, by their headers. */
final class KeyInputs {
  private static final String SAFETENSORS = ".safetensors";

  private final List<SlabFile> files = new ArrayList<>();
  private final Map<String, KeyTensor> tensors = new TreeMap<>();

  private KeyInputs() {}

  /**
   * Reads headers.
   *
   * @param inputs files, or folders all of whose {@code .safetensors} files count
   */
  static KeyInputs open(Configuration conf, List<String> inputs) throws IOException {
    KeyInputs all = new KeyInputs();
    for (String input : inputs) {
      Path path = new Path(input);
      FileSystem fs = RawFileSystem.of(path, conf);
      List<FileStatus> found = list(fs, path);
      if (found.isEmpty()) {
        throw new InvalidKeysException("Invalid input: " + input + " has no .safetensors file");
      }

      for (FileStatus file : found) {
        all.add(fs, file);
      }
    }

    return all;
  }

  private static List<FileStatus> list(FileSystem fs, Path path) throws IOException {
    try {
      FileStatus status = fs.getFileStatus(path);
      if (status.isFile() && !path.getName().endsWith(SAFETENSORS)) {
        throw new InvalidKeysException("Invalid input: " + path + " is no .safetensors file and no folder");
      }

      if (status.isFile()) {
        return List.of(status);
      }
    } catch (FileNotFoundException e) {
      throw new IOException("Cannot read " + path + ": there is no such file or folder", e);
    }

    return Arrays.stream(fs.listStatus(path))
        .filter(file -> file.isFile() && file.getPath().getName().endsWith(SAFETENSORS))
        .sorted(Comparator.comparing(file -> file.getPath().getName()))
        .toList();
  }

  private void add(FileSystem fs, FileStatus file) throws IOException {
    SafetensorsHeader header = SafetensorsHeader.read(fs, file);
    String path = fs.makeQualified(file.getPath()).toString();
    for (TensorInfo tensor : header.tensors()) {
      KeyTensor located = new KeyTensor(tensor.name(), files.size(), path, tensor.dtype(), tensor.shape(),
          header.dataStart() + tensor.begin(), tensor.length());
      KeyTensor other = tensors.put(tensor.name(), located);
      if (other != null) {
        throw located.invalid("file " + other.path() + " has it too; a tensor is in one file");
      }
    }

    files.add(new SlabFile(path, file.getLen(), file.getModificationTime()));
  }

  List<SlabFile> files() {
    return Collections.unmodifiableList(files);
  }

  Iterable<KeyTensor> tensors() {
    return tensors.values();
  }

  /** The tensor of the first of these names that there is, or null. */
  KeyTensor find(String... names) {
    return Arrays.stream(names).filter(tensors::containsKey).map(tensors::get).findFirst().orElse(null);
  }

  /** A small tensor's values. */
  float[] floats(KeyTensor tensor, Configuration conf) throws IOException {
    byte[] bytes = new byte[Math.toIntExact(tensor.length())];
    if (bytes.length > 0) {
      try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("norm", 0, Long.MAX_VALUE);
          FileRanges ranges = new FileRanges(files, "pread", conf);
          ArrowBuf buffer = ranges.read(allocator, tensor.file(), tensor.offset(), bytes.length)) {
        buffer.getBytes(0, bytes);
      }
    }

    return tensor.elements().floats(bytes);
  }
}
