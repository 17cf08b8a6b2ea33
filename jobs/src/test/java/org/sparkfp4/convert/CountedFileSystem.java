package org.sparkfp4.convert;

import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** Local files under a scheme of its own, which remembers what is read at a place: each a request in an object store. */
public final class CountedFileSystem extends RawLocalFileSystem {
  private static final String SCHEME = "counted";
  private static final List<Read> READS = new CopyOnWriteArrayList<>();

  /** Bytes of a file that were read at once. */
  record Read(String file, long offset, int length) {}

  /** Makes the scheme known. */
  static Configuration register(Configuration conf) {
    conf.set("fs." + SCHEME + ".impl", CountedFileSystem.class.getName());
    return conf;
  }

  static String path(java.nio.file.Path folder) {
    return SCHEME + ":" + folder.toUri().getPath();
  }

  /** What was read since this was asked last. */
  static List<Read> reads() {
    List<Read> reads = List.copyOf(READS);
    READS.clear();
    return reads;
  }

  @Override
  public URI getUri() {
    return URI.create(SCHEME + ":///");
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Counted(path.getName(), super.open(path, bufferSize)));
  }

  private static final class Counted extends FSInputStream {
    private final String file;
    private final FSDataInputStream in;

    Counted(String file, FSDataInputStream in) {
      this.file = file;
      this.in = in;
    }

    @Override
    public void readFully(long position, byte[] buffer, int offset, int length) throws IOException {
      READS.add(new Read(file, position, length));
      in.readFully(position, buffer, offset, length);
    }

    @Override
    public int read() throws IOException {
      return in.read();
    }

    @Override
    public int read(byte[] buffer, int offset, int length) throws IOException {
      return in.read(buffer, offset, length);
    }

    @Override
    public void seek(long position) throws IOException {
      in.seek(position);
    }

    @Override
    public long getPos() throws IOException {
      return in.getPos();
    }

    @Override
    public boolean seekToNewSource(long position) throws IOException {
      return in.seekToNewSource(position);
    }

    @Override
    public void close() throws IOException {
      in.close();
    }
  }
}
