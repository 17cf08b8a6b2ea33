package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/** One row of a query's input: the arguments of nvfp4_quantize. Members that are absent are null. */
public record WeightRow(byte[][] members, String dtype, Long cols, Float amax) {
  /** A unit with random weights: its number says how many members, which type, how many rows. */
  public static WeightRow random(int unit) {
    ElementType type = ElementType.values()[unit % 3];
    int cols = 16 * (1 + unit % 5);
    byte[][] members = new byte[3][];
    Random random = new Random(unit);
    for (int member = 0; member <= unit % 3; member++) {
      members[member] = weights(type, (2 + unit % 4 + member) * cols, random);
    }

    return new WeightRow(members, type.name(), (long) cols, null);
  }

  /** One bf16 member of that many elements, all of one value. */
  public static WeightRow constant(float value, int elements, int cols) {
    ByteBuffer data = ByteBuffer.allocate(2 * elements).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      data.putShort(BFloat16.fromFloat(value));
    }

    return new WeightRow(new byte[][] {data.array(), null, null}, "BF16", (long) cols, null);
  }

  public WeightRow withoutData() {
    return new WeightRow(new byte[3][], dtype, cols, amax);
  }

  public WeightRow withAmax(float known) {
    return new WeightRow(members, dtype, cols, known);
  }

  /** With a value that is not finite, at that element of that member. */
  public WeightRow withNaN(int member, int element) {
    byte[][] changed = members.clone();
    changed[member] = members[member].clone();
    ByteBuffer data = ByteBuffer.wrap(changed[member]).order(ByteOrder.LITTLE_ENDIAN);
    int at = element * type().bytes();
    if (type() == ElementType.F32) {
      data.putFloat(at, Float.NaN);
    } else {
      data.putShort(at, (short) 0x7fff);
    }

    return new WeightRow(changed, dtype, cols, amax);
  }

  public ElementType type() {
    return ElementType.of(dtype);
  }

  /** The largest |w| over the members, by the reference. */
  public float referenceAmax() {
    float largest = 0;
    for (byte[] member : members) {
      largest = member == null ? largest : Math.max(largest, Nvfp4.amax(type(), ByteBuffer.wrap(member)));
    }

    return largest;
  }

  /** What nvfp4_quantize must give, by the reference; null without data. */
  public QuantizedRow reference(Nvfp4Recipe recipe) {
    if (members[0] == null) {
      return null;
    }

    float used = amax == null ? referenceAmax() : amax;
    ByteBuffer packed = ByteBuffer.allocate(1 << 20);
    ByteBuffer scales = ByteBuffer.allocate(1 << 20);
    List<Double> squares = new ArrayList<>();
    List<Double> errors = new ArrayList<>();
    for (byte[] member : members) {
      if (member != null) {
        ErrorSums sums = encode(recipe, member, used, packed, scales);
        squares.add(sums.squares());
        errors.add(sums.squaredErrors());
      }
    }

    List<Long> requantized = Collections.nCopies(squares.size(), 0L);
    return new QuantizedRow(
        written(packed), written(scales), used, squares, errors, recipe.globalScale(used, type()), requantized);
  }

  private ErrorSums encode(Nvfp4Recipe recipe, byte[] member, float used, ByteBuffer packed, ByteBuffer scales) {
    ErrorSums sums = new ErrorSums();
    long rows = member.length / type().bytes() / cols;
    if (Nvfp4.isZero(used)) {
      Nvfp4.encodeZero(recipe, rows, cols, packed, scales);
    } else {
      float globalScale = recipe.globalScale(used, type());
      Nvfp4.encode(recipe, type(), ByteBuffer.wrap(member), rows, cols, globalScale, packed, scales, sums);
    }

    packed.position(packed.position() + (int) (rows * cols / 2));
    scales.position(scales.position() + (int) (rows * cols / 16));
    return sums;
  }

  private static byte[] written(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.flip().remaining()];
    buffer.get(bytes);
    return bytes;
  }

  private static byte[] weights(ElementType type, int elements, Random random) {
    ByteBuffer data = ByteBuffer.allocate(elements * type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      float w = (float) random.nextGaussian() * 0.02f;
      switch (type) {
        case BF16 -> data.putShort(BFloat16.fromFloat(w));
        case F16 -> data.putShort(Float16.fromFloat(w));
        case F32 -> data.putFloat(w);
      }
    }

    return data.array();
  }
}
