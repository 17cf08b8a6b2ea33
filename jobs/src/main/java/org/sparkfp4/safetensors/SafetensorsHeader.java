package org.sparkfp4.safetensors;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The header of a safetensors file: an 8-byte little-endian length, then as many bytes of JSON. Tensor data follows at
 * once and fills the file without gaps.
 *
 * @param tensors the tensors in the order of their bytes
 * @param metadata the strings under {@code __metadata__}; empty when there are none
 * @param dataStart first byte of the data section: 8 and the header's length
 * @param dataBytes bytes of the data section
 */
public record SafetensorsHeader(
    List<TensorInfo> tensors, Map<String, String> metadata, long dataStart, long dataBytes) {
  /** Name of the header's entry that is no tensor. */
  public static final String METADATA = "__metadata__";

  /** Longest header that the format allows. */
  public static final int MAX_LENGTH = 100_000_000;

  /** What older readers of transformers insist on. */
  public static final Map<String, String> FORMAT_PT = Map.of("format", "pt");

  public SafetensorsHeader {
    tensors = List.copyOf(tensors);
    metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
  }

  /**
   * Reads and checks the header of a file.
   *
   * @throws InvalidSafetensorsException when the file breaks the format or is not as long as its header says
   */
  public static SafetensorsHeader read(FileSystem fileSystem, Path path) throws IOException {
    return read(fileSystem, fileSystem.getFileStatus(path));
  }

  /** As {@link #read(FileSystem, Path)} for a file whose status is known. */
  public static SafetensorsHeader read(FileSystem fileSystem, FileStatus file) throws IOException {
    try (InputStream in = fileSystem.open(file.getPath())) {
      return parse(file.getPath().toString(), in, file.getLen());
    }
  }

  /**
   * Parses the header at the start of a stream.
   *
   * @param file what messages call the file
   * @param in the file from its first byte; read no further than the header
   * @param fileLength bytes of the whole file
   */
  public static SafetensorsHeader parse(String file, InputStream in, long fileLength) throws IOException {
    if (fileLength < Long.BYTES) {
      throw new InvalidSafetensorsException(
          file, "it has " + fileLength + " bytes, fewer than the 8 of the header's length; download it again");
    }

    int length = checkedLength(file, readFully(file, in, Long.BYTES), fileLength);
    byte[] json = readFully(file, in, length);
    return new HeaderParser(file, fileLength).parse(json);
  }

  /**
   * The bytes from the start of a file to its data section: length, JSON, and spaces so that the data is 8-byte
   * aligned.
   *
   * @param tensors the tensors in the order of their bytes, without gaps, the first at 0
   * @throws IllegalArgumentException when two tensors have one name, or they do not follow one another, or a size does
   *     not go with dtype and shape, or the header would be longer than {@link #MAX_LENGTH}
   */
  public static byte[] encode(List<TensorInfo> tensors, Map<String, String> metadata) {
    return encode(tensors, metadata, Long.BYTES);
  }

  /** As {@link #encode(List, Map)}, with the data at a multiple of {@code alignment}, itself a multiple of 8. */
  public static byte[] encode(List<TensorInfo> tensors, Map<String, String> metadata, int alignment) {
    return HeaderEncoder.encode(tensors, metadata, alignment);
  }

  private static int checkedLength(String file, byte[] prefix, long fileLength) throws InvalidSafetensorsException {
    long length = ByteBuffer.wrap(prefix).order(ByteOrder.LITTLE_ENDIAN).getLong();
    if (Long.compareUnsigned(length, MAX_LENGTH) > 0) {
      throw new InvalidSafetensorsException(
          file,
          "header length " + Long.toUnsignedString(length) + " is over the format's limit of " + MAX_LENGTH
              + " bytes; the file is damaged or of another format");
    }

    if (length > fileLength - Long.BYTES) {
      throw new InvalidSafetensorsException(
          file,
          "header length " + length + " goes beyond the file, which has " + fileLength + " bytes; download it again");
    }

    return (int) length;
  }

  private static byte[] readFully(String file, InputStream in, int length) throws IOException {
    byte[] bytes = in.readNBytes(length);
    if (bytes.length < length) {
      throw new InvalidSafetensorsException(file, "it ends within its header; it is shorter than its listed length");
    }

    return bytes;
  }
}
