package org.sparkfp4.output;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;

/** The files beside a source's weights, its tokenizer and such, which an output gets as they are. */
public final class SideFiles {
  private final Checkpoint source;
  private final OutputFolder output;
  private final Configuration conf;

  public SideFiles(Checkpoint source, OutputFolder output, Configuration conf) {
    this.source = source;
    this.output = output;
    this.conf = conf;
  }

  /** Digests of the files that are carried over, but for those that the output has its own of; by name. */
  public Map<String, FileDigest> digests(Set<String> own) throws IOException {
    Map<String, FileDigest> digests = new LinkedHashMap<>();
    for (FileStatus file : source.sideFiles()) {
      String name = file.getPath().getName();
      if (!own.contains(name)) {
        try (InputStream in = RawFileSystem.of(file.getPath(), conf).open(file.getPath())) {
          digests.put(name, FileDigest.copy(name, in, OutputStream.nullOutputStream()));
        }
      }
    }

    return digests;
  }

  /**
   * Copies files.
   *
   * @throws IOException if one is not what its digest says any more
   */
  public void copy(Collection<FileDigest> files) throws IOException {
    for (FileDigest expected : files) {
      Path from = ChildPath.of(source.path(), expected.name());
      try (InputStream in = RawFileSystem.of(from, conf).open(from);
          FSDataOutputStream out = output.fs().create(ChildPath.of(output.path(), expected.name()), true)) {
        if (!FileDigest.copy(expected.name(), in, out).equals(expected)) {
          throw new IOException("Cannot copy " + from + ": it changed meanwhile; start the same command again");
        }
      }
    }
  }
}
