package org.sparkfp4.verify;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayDeque;
import java.util.Deque;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;

/** Reads pieces of a checkpoint's tensors. Keeps the few files open that it read last. */
final class TensorReader implements Closeable {
  private static final int OPEN_FILES = 8;

  private final Path folder;
  private final FileSystem fs;
  private final Deque<OpenFile> open = new ArrayDeque<>();

  private record OpenFile(String name, FSDataInputStream stream) {}

  TensorReader(String folder, Configuration conf) throws IOException {
    this.folder = new Path(folder);
    this.fs = RawFileSystem.of(this.folder, conf);
  }

  /**
   * Fills the start of {@code into} from a tensor.
   *
   * @param from first byte, counted from the tensor's first; the beginning of a row where the elements are apart
   * @param length bytes to read
   * @return the bytes read, little-endian
   */
  ByteBuffer read(LocatedTensor tensor, long from, int length, byte[] into) throws IOException {
    if (tensor.strides().isEmpty()) {
      stream(tensor.file()).readFully(tensor.offset() + from, into, 0, length);
    } else {
      new StridedRows(tensor, stream(tensor.file())).read(from, length, into);
    }

    return ByteBuffer.wrap(into, 0, length).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** The only element of an F32 tensor. */
  float scalar(LocatedTensor tensor) throws IOException {
    return read(tensor, 0, Float.BYTES, new byte[Float.BYTES]).getFloat(0);
  }

  private FSDataInputStream stream(String file) throws IOException {
    for (OpenFile candidate : open) {
      if (candidate.name.equals(file)) {
        open.remove(candidate);
        open.addFirst(candidate);
        return candidate.stream;
      }
    }

    if (open.size() == OPEN_FILES) {
      open.removeLast().stream.close();
    }

    open.addFirst(new OpenFile(file, fs.open(ChildPath.of(folder, file))));
    return open.getFirst().stream;
  }

  @Override
  public void close() throws IOException {
    while (!open.isEmpty()) {
      open.removeLast().stream.close();
    }
  }
}
