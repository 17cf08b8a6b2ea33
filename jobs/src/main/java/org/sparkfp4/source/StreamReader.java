package org.sparkfp4.source;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.StreamCapabilities;
import org.apache.hadoop.util.functional.FutureIO;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads a file of any Hadoop file system: straight into the buffer where the stream can, by one request of the range
 * where it can do that, else by way of the heap.
 */
final class StreamReader implements PositionedReader {
  private static final int CHUNK = 1 << 20;
  private static final Logger LOG = LoggerFactory.getLogger(StreamReader.class);

  private final FSDataInputStream in;
  private byte[] chunk;

  StreamReader(FSDataInputStream in) {
    this.in = in;
  }

  @Override
  public void readFully(long position, ByteBuffer target) throws IOException {
    if (in.hasCapability(StreamCapabilities.PREADBYTEBUFFER)) {
      in.readFully(position, target);
    } else if (!in.hasCapability(StreamCapabilities.VECTOREDIO) || !readRange(position, target)) {
      readInChunks(position, target);
    }
  }

  /**
   * Asks an object store for exactly these bytes. After a seek backwards, as between the tensors of a unit, its stream
   * would ask anew for each chunk.
   *
   * @return whether it gave them; it does not try again itself when a connection breaks
   */
  private boolean readRange(long position, ByteBuffer target) throws IOException {
    try {
      FileRange range = FileRange.createFileRange(position, target.remaining());
      in.readVectored(List.of(range), length -> target.slice());
      FutureIO.awaitFuture(range.getData());
      return true;
    } catch (EOFException e) {
      throw e;
    } catch (IOException e) {
      LOG.info("Reading {} bytes at {} once more: {}", target.remaining(), position, e.getMessage());
      return false;
    }
  }

  private void readInChunks(long position, ByteBuffer target) throws IOException {
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
