package org.sparkfp4.jobs.synthetic;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.safetensors.DType;

/**
 * The bytes of a synthetic tensor, chunk by chunk; a chunk is a function of the seed, the tensor and the chunk's number.
 *
 * <p>A weight is Gaussian with sigma 0.02 times a factor of its own and one that its expert's three matrices share, both
 * log-normal, so that amax differs between experts as it does in trained models. Each chunk has a few outliers of 4 to
 * 16 sigma.
 */
final class TensorValues {
  /** Elements of a chunk; a tensor's last one may have fewer. */
  static final int CHUNK = 1 << 16;

  private static final double SIGMA = 0.02;
  private static final Pattern EXPERT = Pattern.compile(".*\\.experts\\.\\d+\\.");
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INTS = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle CHARS = MethodHandles.byteArrayViewVarHandle(char[].class, ByteOrder.LITTLE_ENDIAN);

  private final SyntheticTensor tensor;
  private final long key;
  private final double mean;
  private final double sigma;
  private final int[] table = new int[Quantiles.COUNT];

  TensorValues(SyntheticTensor tensor, long seed) {
    this.tensor = tensor;
    this.key = SplitMix64.key(seed, tensor.name());
    boolean norm = tensor.kind() == SyntheticTensor.Kind.NORM;
    this.mean = norm ? 1 : 0;
    this.sigma = norm ? 0.05 : SIGMA * StrictMath.exp(0.3 * own(key) + expertSpread(tensor.name(), seed));
    for (int i = 0; i < table.length && isFloats(); i++) {
      table[i] = encode(mean + sigma * Quantiles.normal(i));
    }
  }

  private boolean isFloats() {
    return tensor.kind() == SyntheticTensor.Kind.WEIGHT || tensor.kind() == SyntheticTensor.Kind.NORM;
  }

  /** Bytes of the largest chunk of any element type, with room for a last word. */
  static byte[] buffer() {
    return new byte[CHUNK * 8 + 16];
  }

  long chunks() {
    return (tensor.elements() + CHUNK - 1) / CHUNK;
  }

  /** Fills {@code buffer} with a chunk and gives its bytes. */
  int fill(long chunk, byte[] buffer) {
    int elements = (int) Math.min(CHUNK, tensor.elements() - chunk * CHUNK);
    if (!isFloats()) {
      new CodeValues(tensor, key).fill(chunk * CHUNK, elements, buffer);
      return (int) tensor.dtype().bytes(elements);
    }

    long firstWord = chunk * (CHUNK / 4);
    if (tensor.dtype().bits() == 16) {
      fill16(firstWord, elements, buffer);
    } else {
      fill32(firstWord, elements, buffer);
    }

    if (tensor.kind() == SyntheticTensor.Kind.WEIGHT) {
      placeOutliers(chunk, elements, buffer);
    }

    return (int) tensor.dtype().bytes(elements);
  }

  private void fill16(long firstWord, int elements, byte[] buffer) {
    int[] values = table;
    long counter = key + (firstWord + 1) * SplitMix64.GAMMA;
    for (int i = 0; i < elements; i += 4, counter += SplitMix64.GAMMA) {
      long z = SplitMix64.mix(counter);
      long low = values[(int) z & 0xFFF] | values[(int) (z >>> 16) & 0xFFF] << 16;
      long high = values[(int) (z >>> 32) & 0xFFF] | values[(int) (z >>> 48) & 0xFFF] << 16;
      LONGS.set(buffer, 2 * i, low & 0xFFFFFFFFL | high << 32);
    }
  }

  private void fill32(long firstWord, int elements, byte[] buffer) {
    int[] values = table;
    long counter = key + (firstWord + 1) * SplitMix64.GAMMA;
    for (int i = 0; i < elements; i += 4, counter += SplitMix64.GAMMA) {
      long z = SplitMix64.mix(counter);
      LONGS.set(buffer, 4 * i, values[(int) z & 0xFFF] & 0xFFFFFFFFL | (long) values[(int) (z >>> 16) & 0xFFF] << 32);
      LONGS.set(buffer, 4 * i + 8,
          values[(int) (z >>> 32) & 0xFFF] & 0xFFFFFFFFL | (long) values[(int) (z >>> 48) & 0xFFF] << 32);
    }
  }

  private void placeOutliers(long chunk, int elements, byte[] buffer) {
    long stream = ~key;
    int outliers = (int) (SplitMix64.word(stream, chunk * 8) & 3);
    for (int i = 1; i <= outliers; i++) {
      long word = SplitMix64.word(stream, chunk * 8 + i);
      int place = (int) word & (CHUNK - 1);
      if (place < elements) {
        double magnitude = sigma * (4 + 12 * SplitMix64.unit(word));
        put(buffer, place, encode(mean + ((word & CHUNK) == 0 ? magnitude : -magnitude)));
      }
    }
  }

  private void put(byte[] buffer, int element, int bits) {
    if (tensor.dtype().bits() == 16) {
      CHARS.set(buffer, 2 * element, (char) bits);
    } else {
      INTS.set(buffer, 4 * element, bits);
    }
  }

  private int encode(double value) {
    DType dtype = tensor.dtype();
    return switch (dtype) {
      case BF16 -> BFloat16.fromFloat((float) value) & 0xFFFF;
      case F16 -> Float16.fromFloat((float) value) & 0xFFFF;
      case F32 -> Float.floatToRawIntBits((float) value);
      default -> throw new IllegalArgumentException("Cannot synthesize " + tensor.name() + " as " + dtype);
    };
  }

  private static double own(long key) {
    return Quantiles.normal(SplitMix64.mix(key ^ SplitMix64.GAMMA));
  }

  private static double expertSpread(String name, long seed) {
    Matcher expert = EXPERT.matcher(name);
    return expert.lookingAt() ? 0.4 * own(SplitMix64.key(seed, expert.group())) : 0;
  }
}
