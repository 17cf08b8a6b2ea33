package org.sparkfp4.verify;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileStatus;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.ShardRecord;

/** Whether a checkpoint has the shards that its manifest names, and the source is the one that it was made from. */
final class ManifestCheck {
  private final Manifest manifest;
  private final Differences differences;

  ManifestCheck(Manifest manifest, Differences differences) {
    this.manifest = manifest;
    this.differences = differences;
  }

  /** What a manifest records of each shard, by the shard's name; of two records of one name the first. */
  static Map<String, ShardRecord> byFile(Manifest manifest) {
    Map<String, ShardRecord> byFile = new TreeMap<>();
    manifest.shards().forEach(record -> byFile.putIfAbsent(record.file(), record));
    return byFile;
  }

  /** Holds the shards that are there to the manifest, by their names and lengths. */
  void checkShards(List<FileStatus> shards) {
    Map<String, ShardRecord> recorded = byFile(manifest);
    if (recorded.size() < manifest.shards().size()) {
      differences.add(Manifest.FILE + " has " + manifest.shards().size() + " records of "
          + recorded.size() + " shards: it names one of them more than once");
    }

    Set<String> files = new TreeSet<>(recorded.keySet());
    for (FileStatus shard : shards) {
      String file = shard.getPath().getName();
      ShardRecord known = recorded.get(file);
      files.remove(file);
      if (known == null) {
        differences.add("Shard " + file + " is not in the manifest");
      } else if (known.length() != shard.getLen()) {
        differences.add("Shard " + file + " has " + shard.getLen() + " bytes, in the manifest " + known.length());
      }
    }

    files.forEach(file -> differences.add("Missing shard " + file + ", which is in the manifest"));
  }

  /**
   * Whether the source is, as far as sizes tell, the one that the checkpoint was made from. What a conversion was made
   * from is quantized itself, and not what it is held against.
   */
  void checkSources(List<SourceFile> sources) {
    if (manifest.isConverted()) {
      return;
    }

    Map<String, Long> lengths = sources.stream().collect(Collectors.toMap(SourceFile::name, SourceFile::length));
    for (SourceFile file : manifest.sources()) {
      Long length = lengths.get(file.name());
      if (length == null || length != file.length()) {
        differences.add("Source file " + file.name() + (length == null ? " is missing" : " has " + length + " bytes")
            + ", by the manifest the checkpoint was made from one of " + file.length());
      }
    }
  }
}
