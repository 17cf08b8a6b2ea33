package org.sparkfp4.source;

import java.io.Closeable;
import java.io.IOException;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;

/** An open source file. */
interface SourceInput extends Closeable {
  /**
   * Bytes of the file. The buffer belongs to the caller and stays valid after the input is closed.
   *
   * @param offset first byte
   * @param length bytes, 1 to {@link ByteRange#MAX_LENGTH}
   */
  ArrowBuf read(BufferAllocator allocator, long offset, long length) throws IOException;
}
