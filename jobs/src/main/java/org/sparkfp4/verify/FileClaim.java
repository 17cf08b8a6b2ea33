package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.output.FileDigest;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.ShardRecord;

/**
 * What a manifest says of a file's bytes.
 *
 * @param isSource whether it is one that the checkpoint was made from; names are often the same in both folders
 * @param folder the file's folder
 * @param name its name there
 * @param length its bytes
 * @param sha256 their SHA-256, or null
 * @param crc32c their CRC-32C, or null
 */
record FileClaim(boolean isSource, String folder, String name, long length, String sha256, String crc32c)
    implements Serializable {
  /** @throws IllegalArgumentException if the name leads out of the folder */
  FileClaim {
    ChildPath.of(new Path(folder), name);
  }

  /** The file, to begin a sentence with. */
  String title() {
    return (isSource ? "Source file " : "File ") + name;
  }

  /** The file where it is not, with the folder that was looked in. */
  String missing() {
    return (isSource ? "source file " : "file ") + name + " in " + folder;
  }

  /** The files beside the shards. */
  static List<FileClaim> besideShards(Path folder, Manifest manifest) {
    List<FileClaim> claims = new ArrayList<>();
    for (FileDigest file : manifest.digests()) {
      claims.add(new FileClaim(false, folder.toString(), file.name(), file.length(), file.sha256(), null));
    }

    return claims;
  }

  /** The shards. */
  static List<FileClaim> shards(Path folder, Manifest manifest) {
    List<FileClaim> claims = new ArrayList<>();
    for (ShardRecord shard : manifest.shards()) {
      claims.add(new FileClaim(false, folder.toString(), shard.file(), shard.length(), shard.sha256(), null));
    }

    return claims;
  }

  /** The files that the checkpoint was made from. */
  static List<FileClaim> sources(Path folder, Manifest manifest) {
    Map<String, String> checksums = manifest.checksums();
    List<FileClaim> claims = new ArrayList<>();
    for (SourceFile file : manifest.sources()) {
      claims.add(
          new FileClaim(true, folder.toString(), file.name(), file.length(), null, checksums.get(file.name())));
    }

    return claims;
  }
}
