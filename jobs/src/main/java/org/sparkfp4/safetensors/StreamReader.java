package org.sparkfp4.safetensors;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.StreamCapabilities;

/** Reads a file of any Hadoop file system: straight into the buffer where the stream can, else by way of the heap. */
final class StreamReader implements PositionedReader {
  private static final int CHUNK = 1 << 20;

  private final FSDataInputStream in;
  private byte[] chunk;

  StreamReader(FSDataInputStream in) {
    this.in = in;
  }

  @Override
  public void readFully(long position, ByteBuffer target) throws IOException {
    if (in.hasCapability(StreamCapabilities.PREADBYTEBUFFER)) {
      in.readFully(position, target);
      return;
    }

    if (chunk == null) {
      chunk = new byte[CHUNK];
    }

    // a seek and a run, since object stores answer each positioned read with a request of its own
    in.seek(position);
    while (target.hasRemaining()) {
      int count = Math.min(CHUNK, target.remaining());
      in.readFully(chunk, 0, count);
      target.put(chunk, 0, count);
    }
  }

  @Override
  public void close() throws IOException {
    in.close();
  }
}
