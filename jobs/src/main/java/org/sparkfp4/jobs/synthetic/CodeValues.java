package org.sparkfp4.jobs.synthetic;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.safetensors.DType;

/**
 * The bytes of codes and scales. Codes are uniform; scales are such that weights are about as large as trained ones,
 * and differ between tensors and blocks by powers of two.
 */
final class CodeValues {
  private static final int E8M0_BIAS = 127;
  private static final int SPREAD = 3;

  private final SyntheticTensor tensor;
  private final long key;

  CodeValues(SyntheticTensor tensor, long key) {
    this.tensor = tensor;
    this.key = key;
  }

  /** Writes elements from {@code first} on to the start of the buffer. */
  void fill(long first, int elements, byte[] buffer) {
    ByteBuffer out = ByteBuffer.wrap(buffer).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      long word = SplitMix64.word(key, first + i);
      switch (tensor.kind()) {
        case CODES -> putCode(out, word);
        case SCALE -> putScale(out, exponent(word));
        case SHAPE -> out.putLong(tensor.contents().get((int) first + i));
        default -> throw new IllegalArgumentException("Cannot synthesize " + tensor.name() + " as codes");
      }
    }
  }

  private void putCode(ByteBuffer out, long word) {
    if (tensor.dtype() == DType.I32) {
      out.putInt((int) (word >>> 32));
    } else if (tensor.dtype() == DType.F8_E4M3 && (word >>> 56 & 0x7F) == 0x7F) {
      // the two codes that are no numbers
      out.put((byte) 0);
    } else {
      out.put((byte) (word >>> 56));
    }
  }

  /** Power of two of a scale: -6 for codes to 6, -13 for codes to 448, and a few more or less. */
  private int exponent(long word) {
    int own = (int) Math.floorMod(SplitMix64.mix(key), (long) SPREAD);
    int largest = tensor.name().endsWith(".scale") || tensor.name().endsWith("_inv") ? -13 : -6;
    return largest - own - (int) Math.floorMod(word, (long) SPREAD);
  }

  private void putScale(ByteBuffer out, int exponent) {
    float scale = (float) StrictMath.scalb(1.25, exponent);
    switch (tensor.dtype()) {
      case F32 -> out.putFloat(scale);
      case BF16 -> out.putShort(BFloat16.fromFloat(scale));
      case U8, F8_E8M0 -> out.put((byte) (exponent + E8M0_BIAS));
      default -> throw new IllegalArgumentException(
          "Cannot synthesize " + tensor.name() + ": scales of " + tensor.dtype() + " are not known");
    }
  }
}
