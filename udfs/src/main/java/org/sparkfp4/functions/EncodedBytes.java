package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.Nvfp4Kernel;

/**
 * A unit that was encoded row by row: its bytes on the heap.
 *
 * @param packed codes of its members, [rows, cols / 2] each
 * @param scales their block scales, [rows, cols / 16] each
 */
record EncodedBytes(byte[] packed, byte[] scales, WeightUnit.Encoded encoded) {
  /**
   * Encodes a unit.
   *
   * @param scratch memory until the caller returns
   */
  static EncodedBytes of(
      WeightUnit unit, Nvfp4Kernel kernel, Nvfp4Recipe recipe, ScaleSearch search, NativeScratch scratch) {
    byte[] packed = new byte[Math.toIntExact(unit.packedBytes())];
    byte[] scales = new byte[Math.toIntExact(unit.scalesBytes())];
    ArrowBuf packedOut = scratch.take(packed.length);
    ArrowBuf scalesOut = scratch.take(scales.length);
    WeightUnit.Encoded encoded =
        unit.encode(kernel, recipe, search, packedOut.memoryAddress(), scalesOut.memoryAddress());
    packedOut.getBytes(0, packed);
    scalesOut.getBytes(0, scales);
    return new EncodedBytes(packed, scales, encoded);
  }
}
