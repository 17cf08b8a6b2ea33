package org.sparkfp4.sink;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.sparkfp4.output.ShardOutput;

/** Bytes that wait: in memory while they are few, then in a file that is gone as soon as nobody has it open. */
final class ByteSpool implements ShardOutput {
  static final int IN_MEMORY = 32 << 20;

  private static final int PIECE = 1 << 20;

  private final ByteArrayOutputStream memory = new ByteArrayOutputStream();
  private FileChannel file;
  private long length;

  @Override
  public void write(ByteBuffer bytes) throws IOException {
    length += bytes.remaining();
    if (file == null && length > IN_MEMORY) {
      file = open();
      writeFully(ByteBuffer.wrap(memory.toByteArray()));
      memory.reset();
    }

    if (file == null) {
      byte[] copy = new byte[bytes.remaining()];
      bytes.get(copy);
      memory.writeBytes(copy);
    } else {
      writeFully(bytes);
    }
  }

  private static FileChannel open() throws IOException {
    Path path = Files.createTempFile("sparkfp4-scales", ".tmp");
    return FileChannel.open(
        path, StandardOpenOption.READ, StandardOpenOption.WRITE, StandardOpenOption.DELETE_ON_CLOSE);
  }

  private void writeFully(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      file.write(bytes);
    }
  }

  @Override
  public long length() {
    return length;
  }

  /** Moves the bytes to {@code out}; the spool is empty then. */
  void drainTo(ShardOutput out) throws IOException {
    if (file == null) {
      out.write(ByteBuffer.wrap(memory.toByteArray()));
    } else {
      ByteBuffer piece = ByteBuffer.allocate(PIECE);
      for (long place = 0; place < length; ) {
        piece.clear().limit((int) Math.min(PIECE, length - place));
        place += file.read(piece, place);
        out.write(piece.flip());
      }
    }

    close();
  }

  @Override
  public String finish() {
    throw new UnsupportedOperationException("Cannot finish a spool: it is no shard");
  }

  @Override
  public void close() throws IOException {
    memory.reset();
    length = 0;
    if (file != null) {
      file.close();
      file = null;
    }
  }
}
