package org.sparkfp4.output;

import java.io.Serializable;

/**
 * Bytes of a source file that a task read for its shard.
 *
 * @param file the file's name
 * @param offset first byte
 * @param length bytes
 * @param crc32c their CRC-32C
 */
public record SourcePiece(String file, long offset, long length, int crc32c) implements Serializable {
  long end() {
    return offset + length;
  }
}
