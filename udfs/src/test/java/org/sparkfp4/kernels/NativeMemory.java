package org.sparkfp4.kernels;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.util.MemoryUtil;

/** Native memory at an address of chosen alignment, between guards that show a write past either end. */
final class NativeMemory {
  private static final int GUARD = 256;
  private static final byte MARK = (byte) 0xA5;

  private final ByteBuffer buffer;
  private final int start;
  private final int size;

  private NativeMemory(int size, int misalignment) {
    this.buffer = ByteBuffer.allocateDirect(size + 2 * GUARD + 64).order(ByteOrder.LITTLE_ENDIAN);
    this.start = GUARD + (int) (-MemoryUtil.getByteBufferAddress(buffer) & 63) + misalignment;
    this.size = size;
    for (int i = 0; i < start; i++) {
      buffer.put(i, MARK);
    }

    for (int i = start + size; i < buffer.capacity(); i++) {
      buffer.put(i, MARK);
    }
  }

  /** Room for a kernel's output, {@code misalignment} bytes past a cache line's start. */
  static NativeMemory room(int size, int misalignment) {
    return new NativeMemory(size, misalignment);
  }

  static NativeMemory of(byte[] bytes, int misalignment) {
    NativeMemory memory = new NativeMemory(bytes.length, misalignment);
    memory.buffer.put(memory.start, bytes);
    return memory;
  }

  long address() {
    return MemoryUtil.getByteBufferAddress(buffer) + start;
  }

  int size() {
    return size;
  }

  byte[] bytes() {
    byte[] bytes = new byte[size];
    buffer.get(start, bytes);
    return bytes;
  }

  void checkGuards() {
    byte[] all = new byte[buffer.capacity()];
    buffer.get(0, all);
    for (int i = 0; i < all.length; i++) {
      if (all[i] != MARK && (i < start || i >= start + size)) {
        throw new AssertionError("byte " + (i - start) + " of " + size + " was written");
      }
    }
  }
}
