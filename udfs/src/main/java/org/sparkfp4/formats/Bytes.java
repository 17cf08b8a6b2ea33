package org.sparkfp4.formats;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Bytes that may be more than an array or a buffer holds: what layouts are read from and written to. Never a copy. */
public interface Bytes {
  /** How many there are. */
  long size();

  /** The byte at an index from 0 on. */
  byte get(long index);

  /** Changes a byte. */
  void set(long index, byte value);

  /** Four bytes as a little-endian integer. */
  default int intAt(long index) {
    return get(index) & 0xFF | (get(index + 1) & 0xFF) << 8 | (get(index + 2) & 0xFF) << 16 | get(index + 3) << 24;
  }

  /** The bytes of an array. */
  static Bytes of(byte[] array) {
    return of(ByteBuffer.wrap(array));
  }

  /** The bytes of a buffer from position to limit. */
  static Bytes of(ByteBuffer buffer) {
    return new BufferBytes(new ByteBuffer[] {buffer.slice()}, buffer.remaining());
  }

  /**
   * A part of a file, mapped read-only; the mapping ends when the result is garbage.
   *
   * @param offset of the part's first byte
   * @param size of the part in bytes
   * @throws IllegalArgumentException if the file ends before the part does
   */
  static Bytes map(Path file, long offset, long size) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      if (offset < 0 || size < 0 || size > channel.size() - offset) {
        throw new IllegalArgumentException("Invalid part of " + file + ": " + size + " bytes at " + offset
            + ", the file has " + channel.size());
      }

      ByteBuffer[] pieces = new ByteBuffer[Math.toIntExact((size + BufferBytes.PIECE - 1) / BufferBytes.PIECE)];
      for (int i = 0; i < pieces.length; i++) {
        long start = i * BufferBytes.PIECE;
        pieces[i] = channel.map(MapMode.READ_ONLY, offset + start, Math.min(BufferBytes.PIECE, size - start));
      }

      return new BufferBytes(pieces, size);
    }
  }

  /**
   * Checks that there is room.
   *
   * @throws IllegalArgumentException naming what is too short
   */
  static void require(String name, Bytes bytes, long size) {
    if (bytes.size() < size) {
      throw new IllegalArgumentException("Invalid " + name + ": " + bytes.size() + " bytes, must be " + size);
    }
  }
}
