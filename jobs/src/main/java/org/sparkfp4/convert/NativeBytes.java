package org.sparkfp4.convert;

import java.nio.ByteBuffer;
import org.apache.arrow.memory.util.MemoryUtil;

/**
 * Native memory that is used again, and grows where more is asked for. It begins a line of the caches, so that kernels can
 * write whole ones.
 */
final class NativeBytes {
  private static final int LINE = 64;

  private ByteBuffer memory = ByteBuffer.allocateDirect(0);

  /** So many bytes, whatever they are. */
  ByteBuffer of(long length) {
    if (memory.capacity() < length) {
      memory = ByteBuffer.allocateDirect(Math.toIntExact(length + 2 * LINE - 1)).alignedSlice(LINE);
    }

    return memory.clear().limit(Math.toIntExact(length));
  }

  /** These bytes. */
  ByteBuffer of(byte[] bytes) {
    return of(bytes.length).put(0, bytes);
  }

  /** Where they are. */
  long address() {
    return MemoryUtil.getByteBufferAddress(memory);
  }

  /** The bytes that were asked for last. */
  byte[] copy() {
    byte[] bytes = new byte[memory.remaining()];
    memory.get(memory.position(), bytes);
    return bytes;
  }
}
