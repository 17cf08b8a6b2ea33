package org.sparkfp4.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;

/** What must hold whatever a file has in it. */
public final class Hostile {
  /** What a parser allocates for an empty file: its tables, buffers and the exception with its stack. */
  private static final long BYTES_FOR_NOTHING = 4 << 20;

  /** Objects of Java for a byte of JSON: the shortest entries, and the parts of names, become maps, lists and strings. */
  private static final long BYTES_FOR_BYTE = 1024;

  /** What a fuzzer's hooks allocate beside: they box and encode both sides of every comparison and of every map's lookup. */
  private static final long HOOKS = System.getenv("JAZZER_FUZZ") == null ? 1 : 16;

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Hostile() {}

  /** What is done with a file. */
  public interface Reading {
    void run() throws IOException;
  }

  /**
   * Asserts that a file is read or refused in words for its user, and with memory for what it has, not for what it
   * says.
   *
   * @param bytes of the file
   */
  public static void read(int bytes, Reading reading) {
    long limit = BYTES_FOR_NOTHING + HOOKS * BYTES_FOR_BYTE * bytes;
    long allocated = allocated(reading);
    if (allocated > limit) {
      // the first time Java loads the classes that it needs
      allocated = allocated(reading);
    }

    assertThat(allocated).as("bytes that were allocated for a file of %d", bytes).isLessThan(limit);
  }

  private static long allocated(Reading reading) {
    long before = THREADS.getCurrentThreadAllocatedBytes();
    try {
      reading.run();
    } catch (IOException | IllegalArgumentException e) {
      assertThat(e.getMessage()).as("message of %s", e.getClass()).matches("(?s)(Cannot|Invalid) .*");
    }

    return THREADS.getCurrentThreadAllocatedBytes() - before;
  }

  /** Several files in one input: what lies between bytes that are 0, as many parts as asked for. */
  public static byte[][] split(byte[] data, int parts) {
    String[] texts = new String(data, StandardCharsets.ISO_8859_1).split("\0", parts);
    byte[][] files = new byte[parts][0];
    for (int i = 0; i < texts.length; i++) {
      files[i] = texts[i].getBytes(StandardCharsets.ISO_8859_1);
    }

    return files;
  }
}
