package org.sparkfp4.source;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** Reads a local file without a detour through the heap. */
record ChannelReader(FileChannel channel) implements PositionedReader {
  @Override
  public void readFully(long position, ByteBuffer target) throws IOException {
    long from = position;
    while (target.hasRemaining()) {
      int count = channel.read(target, from);
      if (count < 0) {
        throw new EOFException("end of file at " + from);
      }

      from += count;
    }
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
