package org.sparkfp4.kernels;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.util.MemoryUtil;

/**
 * Blocks of gigabytes that are zeros and take memory only where they are written: allocations of this size come fresh
 * from the operating system.
 */
final class SparseMemory implements AutoCloseable {
  private final List<Long> blocks = new ArrayList<>();

  long allocate(long bytes) {
    long address = MemoryUtil.allocateMemory(bytes);
    blocks.add(address);
    return address;
  }

  static void put(long address, byte[] bytes) {
    for (int i = 0; i < bytes.length; i++) {
      MemoryUtil.putByte(address + i, bytes[i]);
    }
  }

  static byte[] get(long address, int count) {
    byte[] bytes = new byte[count];
    for (int i = 0; i < count; i++) {
      bytes[i] = MemoryUtil.getByte(address + i);
    }

    return bytes;
  }

  static byte[] random(Random random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  @Override
  public void close() {
    blocks.forEach(MemoryUtil::freeMemory);
  }
}
