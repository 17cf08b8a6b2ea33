package org.sparkfp4.kernels;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;

/** Codes and scales of quantized sources, drawn or packed. */
final class QuantizedBytes {
  private QuantizedBytes() {}

  /** Codes of all magnitudes under scales near one another. */
  static QuantizedUnit.Segment gaussian(WeightScheme scheme, int rows, int cols, Random random) {
    int count = (int) (scheme.scaleRows(rows) * scheme.scaleCols(cols));
    float[] scales = new float[count];
    for (int i = 0; i < count; i++) {
      scales[i] = 0.001f * (float) Math.exp(random.nextGaussian());
    }

    byte[] codes = new byte[(int) scheme.codeBytes(rows, cols)];
    for (int i = 0; i < codes.length; i++) {
      codes[i] = scheme.codes() == CodeType.E4M3 ? (byte) (random.nextInt(2) << 7 | e4m3Magnitude(random))
          : (byte) random.nextInt();
    }

    return new QuantizedUnit.Segment(codes, scales(scheme.scales(), scales), rows);
  }

  /** Mostly near the top, as quantizers leave them, and each code now and then. */
  private static int e4m3Magnitude(Random random) {
    return random.nextInt(10) == 0 ? random.nextInt(0x7F) : Math.min(0x7E, 0x60 + (int) (8 * random.nextGaussian()));
  }

  /** Codes of any finite magnitude. */
  static byte[] randomCodes(CodeType type, int elements, Random random) {
    byte[] codes = new byte[elements * type.bits() / 8];
    for (int i = 0; i < codes.length; i++) {
      codes[i] = type == CodeType.E4M3 ? (byte) (random.nextInt(2) << 7 | random.nextInt(0x7F))
          : (byte) random.nextInt();
    }

    return codes;
  }

  /** Codes packed as a source stores them. */
  static byte[] packed(CodeType type, int[] codes) {
    byte[] bytes = new byte[codes.length * type.bits() / 8];
    for (int i = 0; i < codes.length; i++) {
      if (type == CodeType.E4M3) {
        bytes[i] = (byte) codes[i];
      } else {
        bytes[i / 2] |= (byte) (codes[i] << 4 * (i % 2));
      }
    }

    return bytes;
  }

  /** Scales as a source stores them. */
  static byte[] scales(ScaleType type, float... values) {
    ByteBuffer scales = ByteBuffer.allocate(values.length * type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    for (float value : values) {
      switch (type) {
        case F32 -> scales.putFloat(value);
        case BF16 -> scales.putShort(BFloat16.fromFloat(value));
        case F16 -> scales.putShort(Float16.fromFloat(value));
        case E8M0 -> scales.put((byte) (Math.getExponent(value) + 127));
      }
    }

    return scales.array();
  }
}
