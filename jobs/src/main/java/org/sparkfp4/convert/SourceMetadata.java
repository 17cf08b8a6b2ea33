package org.sparkfp4.convert;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.sparkfp4.checkpoint.HeaderReader;
import org.sparkfp4.safetensors.SafetensorsHeader;

/**
 * The {@code __metadata__} of a checkpoint's files.
 *
 * @param values by key
 * @param files the file of each key, for messages, where it is known
 */
record SourceMetadata(Map<String, String> values, Map<String, String> files) {
  /** Reads the headers of files. */
  static SourceMetadata read(FileSystem fs, List<FileStatus> shards) throws IOException {
    Map<String, String> values = new TreeMap<>();
    Map<String, String> files = new HashMap<>();
    List<SafetensorsHeader> headers = HeaderReader.read(fs, shards);
    for (int i = 0; i < headers.size(); i++) {
      String file = shards.get(i).getPath().getName();
      values.putAll(headers.get(i).metadata());
      headers.get(i).metadata().keySet().forEach(key -> files.put(key, file));
    }

    return new SourceMetadata(values, files);
  }

  /** What messages call a key. */
  String named(String key) {
    return key + (files.containsKey(key) ? " in " + files.get(key) : "");
  }

  /**
   * The global scales that others were made from, by the names of the tensors that they would be.
   *
   * @throws IllegalArgumentException if one is none
   */
  Map<String, GlobalScale> origins() {
    Map<String, GlobalScale> origins = new HashMap<>();
    values.forEach((key, value) -> {
      if (key.startsWith(GlobalScale.KEY)) {
        try {
          origins.put(key.substring(GlobalScale.KEY.length()), GlobalScale.parse(value));
        } catch (IllegalArgumentException e) {
          throw new IllegalArgumentException(
              "Invalid metadata " + named(key) + ": " + e.getMessage() + "; convert the checkpoint anew from its source",
              e);
        }
      }
    });
    return origins;
  }
}
