package org.sparkfp4.kernels;

import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Bytes;

/** Native memory; whoever made it says how much there is. */
record AddressBytes(long address, long size) implements Bytes {
  @Override
  public byte get(long index) {
    return MemoryUtil.getByte(address + index);
  }

  @Override
  public void set(long index, byte value) {
    MemoryUtil.putByte(address + index, value);
  }
}
