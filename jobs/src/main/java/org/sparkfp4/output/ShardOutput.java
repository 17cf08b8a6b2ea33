package org.sparkfp4.output;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;

/** The bytes of a shard on their way to storage, hashed as they pass. */
public interface ShardOutput extends Closeable {
  /** Appends what is left of {@code bytes}. */
  void write(ByteBuffer bytes) throws IOException;

  /** Bytes written so far. */
  long length();

  /** Makes what was written durable, closes the file and gives the SHA-256 of its bytes in hexadecimal. */
  String finish() throws IOException;

  /**
   * Whether a file that is closed before it is finished was never there: what stands under its name is another
   * attempt's, and not to be removed.
   */
  default boolean isGoneWhenUnfinished() {
    return false;
  }

  /** Closes the file; one that is not finished is not to be seen by readers, where the storage can do that. */
  @Override
  void close() throws IOException;
}
