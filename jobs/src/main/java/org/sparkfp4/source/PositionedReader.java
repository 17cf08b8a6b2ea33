package org.sparkfp4.source;

import java.io.Closeable;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;

/** Reads anywhere in a file. */
interface PositionedReader extends Closeable {
  /**
   * Fills a direct buffer from a place of the file.
   *
   * @throws EOFException when the file ends before
   */
  void readFully(long position, ByteBuffer target) throws IOException;
}
