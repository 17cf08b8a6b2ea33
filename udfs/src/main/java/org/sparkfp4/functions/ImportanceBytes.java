package org.sparkfp4.functions;

import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Importance;
import org.sparkfp4.formats.Weighting;

/**
 * The statistics of a unit's input as a row has them; their length tells which they are.
 *
 * @param address of the first byte, where the kernel finds it
 * @param length bytes
 * @param onHost address of the same bytes in host memory
 */
record ImportanceBytes(long address, long length, long onHost) {
  ImportanceBytes(long address, long length) {
    this(address, length, address);
  }

  /** Those of an argument on the heap, which may be null, copied to where a kernel can read them. */
  static ImportanceBytes copied(byte[] importance, NativeScratch scratch) {
    return importance == null ? null : new ImportanceBytes(scratch.copy(importance), importance.length);
  }

  /**
   * What they weigh by.
   *
   * @throws IllegalArgumentException if they are not those of so many columns
   */
  Weighting weighting(long cols) {
    for (Weighting weighting : Weighting.values()) {
      if (length == Float.BYTES * weighting.values(cols)) {
        return weighting;
      }
    }

    throw new IllegalArgumentException("Invalid importance: " + length + " bytes, " + cols + " columns have "
        + Float.BYTES * Weighting.DIAGONAL.values(cols) + " or " + Float.BYTES * Weighting.HESSIAN.values(cols));
  }

  /**
   * @throws IllegalArgumentException if they are not those of so many columns
   * @throws org.sparkfp4.formats.InvalidImportanceException if a value of them cannot be
   */
  void check(long cols) {
    Importance.of(weighting(cols), MemoryUtil.directBuffer(onHost, Math.toIntExact(length)));
  }
}
