package org.sparkfp4.output;

import java.io.Closeable;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.UnchangedFile;

/** Reads tensors of the source. Keeps two files open, since a weight and its scales may lie in two. */
public final class SourceFiles implements Closeable {
  private static final int OPEN_FILES = 2;

  private final Path input;
  private final Map<String, SourceFile> sources;
  private final Configuration conf;
  private final SourcePieces pieces;
  private final Map<String, FSDataInputStream> open = new LinkedHashMap<>();
  private final Set<String> used = new TreeSet<>();

  /**
   * @param input the source's folder
   * @param sources its files, as planned
   * @param pieces takes what is read
   */
  public SourceFiles(String input, List<SourceFile> sources, Configuration conf, SourcePieces pieces) {
    this.input = new Path(input);
    this.sources = sources.stream().collect(Collectors.toMap(SourceFile::name, Function.identity()));
    this.conf = conf;
    this.pieces = pieces;
  }

  /** Reads {@code length} bytes of a tensor, from its byte {@code from} on, to the start of {@code into}. */
  public void read(LocatedTensor tensor, long from, byte[] into, int length) throws IOException {
    read(tensor.file(), tensor.offset() + from, into, length);
  }

  /** Reads {@code length} bytes of a file, from its byte {@code offset} on, to the start of {@code into}. */
  public void read(String file, long offset, byte[] into, int length) throws IOException {
    open(file).readFully(offset, into, 0, length);
    pieces.add(file, offset, into, length);
  }

  private FSDataInputStream open(String file) throws IOException {
    FSDataInputStream known = open.get(file);
    if (known != null) {
      return known;
    }

    if (open.size() == OPEN_FILES) {
      String oldest = open.keySet().iterator().next();
      open.remove(oldest).close();
    }

    FSDataInputStream stream = requireUnchanged(file).open(ChildPath.of(input, file));
    open.put(file, stream);
    used.add(file);
    return stream;
  }

  /**
   * Asserts, once all is read, that the files are still those that were planned.
   *
   * @throws org.sparkfp4.files.SourceChangedException naming a file that is not
   */
  public void requireUnchanged() throws IOException {
    for (String file : used) {
      requireUnchanged(file);
    }
  }

  private FileSystem requireUnchanged(String file) throws IOException {
    Path path = ChildPath.of(input, file);
    FileSystem fs = RawFileSystem.of(path, conf);
    SourceFile planned = sources.get(file);
    UnchangedFile.require(fs, path, planned.length(), planned.modified());
    return fs;
  }

  @Override
  public void close() throws IOException {
    for (FSDataInputStream stream : open.values()) {
      stream.close();
    }

    open.clear();
  }
}
