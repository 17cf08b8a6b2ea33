package org.sparkfp4.calibration;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.safetensors.DType;

/** Activations of tests, {@code [tokens, K]}. */
public final class Activations {
  private final float[][] values;

  private Activations(float[][] values) {
    this.values = values;
  }

  /** Nothing but zeros. */
  public static Activations zeros(int tokens, int cols) {
    return new Activations(new float[tokens][cols]);
  }

  /** Normal activations whose columns differ in size and lean on their neighbours; bf16 values. */
  public static Activations random(int tokens, int cols, long seed) {
    Random random = new Random(seed);
    float[][] values = new float[tokens][cols];
    for (float[] token : values) {
      double common = random.nextGaussian();
      for (int i = 0; i < cols; i++) {
        double x = (random.nextGaussian() + 0.5 * common) * Math.pow(1 + i % 37, -0.7);
        token[i] = Float.intBitsToFloat(Float.floatToRawIntBits((float) x) & 0xFFFF0000);
      }
    }

    return new Activations(values);
  }

  /** Normal activations, each column a mixture of fewer sources, and of a size of its own; bf16 values. */
  public static Activations mixed(int tokens, int cols, long seed) {
    Random random = new Random(seed);
    double[][] mixing = new double[cols / 4][cols];
    double[] scales = new double[cols];
    for (int i = 0; i < cols; i++) {
      scales[i] = Math.exp(0.7 * random.nextGaussian());
      for (double[] source : mixing) {
        source[i] = random.nextGaussian() / Math.sqrt(mixing.length);
      }
    }

    float[][] values = new float[tokens][cols];
    for (float[] token : values) {
      double[] x = random.doubles(mixing.length, -1.7, 1.7).toArray();
      for (int i = 0; i < cols; i++) {
        double sum = 0.3 * random.nextGaussian();
        for (int source = 0; source < x.length; source++) {
          sum += x[source] * mixing[source][i];
        }

        token[i] = Float.intBitsToFloat(Float.floatToRawIntBits((float) (scales[i] * sum)) & 0xFFFF0000);
      }
    }

    return new Activations(values);
  }

  public float[][] values() {
    return values;
  }

  public int tokens() {
    return values.length;
  }

  public int cols() {
    return values[0].length;
  }

  public Activations with(int token, int col, float value) {
    values[token][col] = value;
    return this;
  }

  /** Others of the same shape. */
  public Activations withValues(float[][] others) {
    return new Activations(others);
  }

  /** Some of the tokens. */
  public Activations rows(int from, int to) {
    return new Activations(Arrays.copyOfRange(values, from, to));
  }

  public StoredTensor bf16() {
    ByteBuffer bytes = ByteBuffer.allocate(tokens() * cols() * Short.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (float[] token : values) {
      for (float x : token) {
        bytes.putShort((short) (Float.floatToRawIntBits(x) >>> 16));
      }
    }

    return new StoredTensor(DType.BF16, List.of((long) tokens(), (long) cols()), bytes.array());
  }

  public StoredTensor f32() {
    ByteBuffer bytes = ByteBuffer.allocate(tokens() * cols() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (float[] token : values) {
      for (float x : token) {
        bytes.putFloat(x);
      }
    }

    return new StoredTensor(DType.F32, List.of((long) tokens(), (long) cols()), bytes.array());
  }

  /** Expert numbers of each token. */
  public static StoredTensor routing(int[][] experts) {
    ByteBuffer bytes = ByteBuffer.allocate(experts.length * experts[0].length * Long.BYTES)
        .order(ByteOrder.LITTLE_ENDIAN);
    for (int[] token : experts) {
      for (int expert : token) {
        bytes.putLong(expert);
      }
    }

    return new StoredTensor(DType.I64, List.of((long) experts.length, (long) experts[0].length), bytes.array());
  }
}
