package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What the values of a tensor are like. Everything but the counts is of the finite values alone, and NaN where there
 * are none.
 *
 * <p>Sums are of doubles, in the order of the elements: the mean first, then the moments about it.
 *
 * @param elements all of them
 * @param zeros of either sign
 * @param amax the largest magnitude
 * @param deviation the standard deviation of the elements as a population
 * @param kurtosis the fourth moment over the square of the second, 3 of a normal distribution; NaN where all values are
 *     the same
 */
public record TensorSummary(
    long elements,
    long zeros,
    long nans,
    long infinities,
    float min,
    float max,
    float amax,
    double mean,
    double deviation,
    double kurtosis) {
  private static final int CHUNK = 1024;

  /**
   * Reads a tensor twice.
   *
   * @param data little-endian elements, from position to limit
   * @throws IllegalArgumentException if the bytes are no whole number of elements
   */
  public static TensorSummary of(ElementType type, ByteBuffer data) {
    if (data.remaining() % type.bytes() != 0) {
      throw new IllegalArgumentException(
          "Invalid data: " + data.remaining() + " bytes are no whole number of " + type + " elements");
    }

    ByteBuffer source = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    Counts counts = new Counts();
    each(type, source, counts::add);
    double mean = counts.finite == 0 ? Double.NaN : counts.sum / counts.finite;
    Moments moments = new Moments(mean);
    each(type, source, moments::add);
    double variance = counts.finite == 0 ? Double.NaN : moments.second / counts.finite;
    double kurtosis = variance > 0 ? moments.fourth / counts.finite / (variance * variance) : Double.NaN;
    boolean any = counts.finite > 0;
    return new TensorSummary(source.capacity() / type.bytes(), counts.zeros, counts.nans, counts.infinities,
        any ? counts.min : Float.NaN, any ? counts.max : Float.NaN,
        any ? Math.max(Math.abs(counts.min), Math.abs(counts.max)) : Float.NaN, mean, Math.sqrt(variance), kurtosis);
  }

  private static void each(ElementType type, ByteBuffer source, Chunks chunks) {
    int elements = source.capacity() / type.bytes();
    float[] chunk = new float[Math.min(CHUNK, elements)];
    for (int first = 0; first < elements; first += chunk.length) {
      if (elements - first < chunk.length) {
        chunk = new float[elements - first];
      }

      type.load(source, first * type.bytes(), chunk);
      chunks.take(chunk);
    }
  }

  private interface Chunks {
    void take(float[] chunk);
  }

  private static final class Counts {
    private long finite;
    private long zeros;
    private long nans;
    private long infinities;
    private float min = Float.POSITIVE_INFINITY;
    private float max = Float.NEGATIVE_INFINITY;
    private double sum;

    void add(float[] chunk) {
      for (float x : chunk) {
        if (Float.isFinite(x)) {
          finite++;
          zeros += x == 0 ? 1 : 0;
          min = Math.min(min, x);
          max = Math.max(max, x);
          sum += x;
        } else if (Float.isNaN(x)) {
          nans++;
        } else {
          infinities++;
        }
      }
    }
  }

  private static final class Moments {
    private final double mean;
    private double second;
    private double fourth;

    Moments(double mean) {
      this.mean = mean;
    }

    void add(float[] chunk) {
      for (float x : chunk) {
        if (Float.isFinite(x)) {
          double square = (x - mean) * (x - mean);
          second += square;
          fourth += square * square;
        }
      }
    }
  }
}
