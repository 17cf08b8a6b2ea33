package org.sparkfp4.jobs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.sparkfp4.output.FileDigest;

/** A folder of statistics of which a file was changed, and its digest in the index too. */
final class ForgedStatistics {
  private ForgedStatistics() {}

  /** Replaces the content of a file, and its digest in the index beside it. */
  static void replace(Path file, byte[] content) throws IOException {
    Path index = file.resolveSibling("statistics.json");
    String own = sha256(Files.readAllBytes(file));
    Files.writeString(index, Files.readString(index).replace(own, sha256(content)));
    Files.write(file, content);
  }

  private static String sha256(byte[] content) {
    return FileDigest.of("", content).sha256();
  }
}
