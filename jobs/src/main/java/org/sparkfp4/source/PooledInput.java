package org.sparkfp4.source;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.files.SourceChangedException;

/** A file of any file system whose ranges are read into the task's reused buffers. */
final class PooledInput implements SourceInput {
  private final String file;
  private final PositionedReader reader;
  private final BufferPool pool;

  PooledInput(String file, PositionedReader reader, BufferPool pool) {
    this.file = file;
    this.reader = reader;
    this.pool = pool;
  }

  @Override
  public ArrowBuf read(BufferAllocator allocator, long offset, long length) throws IOException {
    ByteBuffer buffer = pool.take(Math.toIntExact(length));
    try {
      reader.readFully(offset, buffer.slice(0, (int) length));
    } catch (EOFException e) {
      pool.give(buffer);
      SourceChangedException shorter = new SourceChangedException(
          file, "bytes " + offset + " to " + (offset + length) + " are wanted, but it ends before");
      shorter.initCause(e);
      throw shorter;
    } catch (IOException | RuntimeException e) {
      pool.give(buffer);
      throw e;
    }

    return allocator.wrapForeignAllocation(new PooledSlab(buffer, length, pool));
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
