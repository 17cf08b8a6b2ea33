package org.sparkfp4.kernels;

import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ScaleRule;

/** What a kernel makes of a tensor. */
record Mxfp4Rows(byte[] packed, byte[] scales) {
  static Mxfp4Rows of(KeyKernel kernel, ScaleRule rule, ElementType type, byte[] data, int cols) {
    int elements = data.length / type.bytes();
    NativeMemory source = NativeMemory.of(data, type.bytes());
    NativeMemory packed = NativeMemory.room(elements / 2, 1);
    NativeMemory scales = NativeMemory.room(elements / 32, 3);
    kernel.quantize(rule, type, source.address(), elements / cols, cols, packed.address(), scales.address());
    // the source too, which must be reachable as long as its address is used
    source.checkGuards();
    packed.checkGuards();
    scales.checkGuards();
    return new Mxfp4Rows(packed.bytes(), scales.bytes());
  }
}
