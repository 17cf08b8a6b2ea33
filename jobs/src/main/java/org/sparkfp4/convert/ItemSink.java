package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Takes the bytes of a file, front to back. */
interface ItemSink {
  void write(ByteBuffer bytes) throws IOException;
}
