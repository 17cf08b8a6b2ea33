package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.data.Percentage.withPercentage;
import static org.sparkfp4.formats.Encoded.bf16;
import static org.sparkfp4.formats.Encoded.f16;
import static org.sparkfp4.formats.Encoded.f32;
import static org.sparkfp4.formats.Nvfp4Recipe.COMPRESSED_TENSORS;
import static org.sparkfp4.formats.Nvfp4Recipe.MODELOPT;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class Nvfp4Test {
  private static final float ZERO_LIMIT = 2688 * 0x1p-126f;

  static Stream<Arguments> recipesAndAmaxes() {
    float[] amaxes = {BFloat16.round(ZERO_LIMIT), 0x1.86p-20f, 0.0703125f, 0.259765625f, 6f, 2688f, 0x1.fep127f};
    return Arrays.stream(Nvfp4Recipe.values()).flatMap(recipe -> Stream.of(0, 1, 2, 3, 4, 5, 6)
        .map(i -> Arguments.of(recipe, amaxes[i])));
  }

  @ParameterizedTest
  @MethodSource("recipesAndAmaxes")
  void everyBFloat16AsAnElement(Nvfp4Recipe recipe, float amax) {
    List<Float> values = new ArrayList<>();
    for (int bits = 0; bits < 0x7F80; bits++) {
      float value = BFloat16.toFloat((short) bits);
      if (value <= amax) {
        values.add(value);
        values.add(-value);
      }
    }

    // in order of magnitude, where a block's elements are near its amax, and shuffled, where most blocks have all kinds
    assertEncodesPlainly(recipe, amax, values);
    Collections.shuffle(values, new Random(1));
    assertEncodesPlainly(recipe, amax, values);
  }

  private static void assertEncodesPlainly(Nvfp4Recipe recipe, float amax, List<Float> values) {
    int cols = (values.size() + 15) / 16 * 16;
    float[] w = new float[cols];
    for (int i = 0; i < values.size(); i++) {
      w[i] = values.get(i);
    }

    PlainNvfp4 plain = new PlainNvfp4(recipe, ElementType.BF16, amax);
    Encoded encoded = Encoded.of(recipe, ElementType.BF16, bf16(w), 1, cols, amax);
    float[] decoded = encoded.decode(recipe, 1, cols);

    assertThat(encoded.globalScale()).isEqualTo(plain.globalScale());
    for (int i = 0; i < cols; i++) {
      int block = i / 16;
      float blockAmax = 0;
      for (int k = 16 * block; k < 16 * block + 16; k++) {
        blockAmax = Math.max(blockAmax, Math.abs(w[k]));
      }

      int scale = encoded.scales()[block];
      int code = encoded.code(i);
      if (scale != plain.scale(blockAmax) || code != plain.code(w[i], scale)) {
        assertThat(scale).as("scale of element %d, %s", i, w[i]).isEqualTo(plain.scale(blockAmax));
        assertThat(code).as("code of element %d, %s", i, w[i]).isEqualTo(plain.code(w[i], scale));
      }

      float expected = (float) (Grid.E2M1_VALUES.value(code & 7) * (code < 8 ? 1 : -1)) * plain.factor(scale);
      if (Float.compare(decoded[i], expected) != 0) {
        assertThat(decoded[i]).as("decoded element %d, %s", i, w[i]).isEqualTo(expected);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void randomF16AndF32AreEncodedPlainly(Nvfp4Recipe recipe) {
    Random random = new Random(2);
    float[] w = new float[16 * 4096];
    for (int i = 0; i < w.length; i++) {
      w[i] = Float16.toFloat(Float16.fromFloat((float) (random.nextGaussian() * Math.exp(2 * random.nextGaussian()))));
    }

    for (ElementType type : List.of(ElementType.F16, ElementType.F32)) {
      ByteBuffer data = type == ElementType.F16 ? f16(w) : f32(w);
      float amax = Nvfp4.amax(type, data);
      PlainNvfp4 plain = new PlainNvfp4(recipe, type, amax);
      Encoded encoded = Encoded.of(recipe, type, data, 64, 1024);
      assertThat(encoded.globalScale()).isEqualTo(plain.globalScale());
      for (int block = 0; block < w.length / 16; block++) {
        float[] elements = Arrays.copyOfRange(w, 16 * block, 16 * block + 16);
        int scale = plain.scale(Nvfp4.amax(ElementType.F32, f32(elements)));
        assertThat(encoded.scales()[block]).isEqualTo((byte) scale);
        for (int i = 0; i < 16; i++) {
          assertThat(encoded.code(16 * block + i)).isEqualTo(plain.code(elements[i], scale));
        }
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void zeroBlockBesideAnother(Nvfp4Recipe recipe) {
    float[] w = new float[48];
    w[0] = 1;
    w[16] = -0f;

    Encoded encoded = Encoded.of(recipe, ElementType.BF16, bf16(w), 1, 48);

    byte zero = (byte) recipe.zeroScale();
    assertThat(encoded.scales()).containsExactly((byte) 0x7E, zero, zero);
    assertThat(Arrays.copyOfRange(encoded.packed(), 8, 24)).containsOnly(0);
  }

  @ParameterizedTest
  @EnumSource
  void zeroTensor(Nvfp4Recipe recipe) {
    float justBelow = Math.nextDown(ZERO_LIMIT);
    for (float value : new float[] {0f, -0f, Float.MIN_VALUE, justBelow, -justBelow}) {
      float[] w = new float[64];
      Arrays.fill(w, value);

      Encoded encoded = Encoded.of(recipe, ElementType.F32, f32(w), 2, 32);

      assertThat(encoded.globalScale()).isEqualTo(recipe == MODELOPT ? 1 / 2688f : 1f);
      assertThat(encoded.scales()).containsOnly(recipe.zeroScale());
      assertThat(encoded.packed()).containsOnly(0);
      assertThat(encoded.decode(recipe, 2, 32)).containsOnly(0f);
    }
  }

  @ParameterizedTest
  @EnumSource
  void theSmallestTensorThatIsNotZero(Nvfp4Recipe recipe) {
    float[] w = new float[16];
    w[3] = -ZERO_LIMIT;

    assertThat(Nvfp4.isZero(Math.nextDown(ZERO_LIMIT))).isTrue();
    assertThat(Nvfp4.isZero(ZERO_LIMIT)).isFalse();
    Encoded encoded = Encoded.of(recipe, ElementType.F32, f32(w), 1, 16);

    assertThat(encoded.scales()).containsExactly((byte) 0x7E);
    assertThat(encoded.code(3)).isEqualTo(15);
    assertThat(encoded.decode(recipe, 1, 16)[3]).isCloseTo(-ZERO_LIMIT, withPercentage(1));
  }

  @Test
  void saturatesWhereTheSharedAmaxWasTooSmall() {
    float[] w = new float[16];
    w[0] = 1000;
    w[1] = -1000;
    w[2] = 1;

    Encoded encoded = Encoded.of(MODELOPT, ElementType.BF16, bf16(w), 1, 16, 1f);

    assertThat(encoded.scales()).containsExactly((byte) 0x7E);
    assertThat(encoded.packed()[0]).isEqualTo((byte) 0xF7);
    assertThat(encoded.code(2)).isEqualTo(7);
  }

  @Test
  void firstElementOfAPairIsInTheLowHalfAndRowsFollowEachOther() {
    float[] w = new float[64];
    w[0] = 6;
    w[1] = 0.5f;
    w[2] = -1;
    w[32 + 15] = 3;
    w[32 + 16] = -12;

    Encoded encoded = Encoded.of(MODELOPT, ElementType.F16, f16(w), 2, 32, 2688f);

    assertThat(encoded.globalScale()).isEqualTo(1f);
    assertThat(encoded.scales()).containsExactly((byte) 0x38, (byte) 0x38, (byte) 0x30, (byte) 0x40);
    assertThat(encoded.packed()[0]).isEqualTo((byte) 0x17);
    assertThat(encoded.packed()[1]).isEqualTo((byte) 0x0A);
    assertThat(encoded.packed()[16 + 7]).isEqualTo((byte) 0x70);
    assertThat(encoded.packed()[16 + 8]).isEqualTo((byte) 0x0F);
  }

  @ParameterizedTest
  @EnumSource
  void amaxIsTheLargestMagnitude(ElementType type) {
    for (int elements : new int[] {1, 15, 16, 17, 33}) {
      for (int at = 0; at < elements; at++) {
        float[] w = new float[elements];
        Arrays.fill(w, 1.5f);
        w[at] = -2.5f;
        assertThat(Nvfp4.amax(type, source(type, w))).isEqualTo(2.5f);
      }
    }

    assertThat(Nvfp4.amax(type, source(type))).isZero();
    assertThat(Nvfp4.amax(type, source(type, -0f))).isEqualTo(0f);
  }

  @ParameterizedTest
  @ValueSource(floats = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY})
  void nonFiniteElementsAreRefusedByTheirIndex(float bad) {
    for (ElementType type : ElementType.values()) {
      for (int at : new int[] {0, 15, 16, 31, 32, 36}) {
        float[] w = new float[37];
        Arrays.fill(w, at, w.length, bad);
        assertRefused(at, bad, () -> Nvfp4.amax(type, source(type, w)));
      }

      float[] w = new float[64];
      w[37] = bad;
      w[50] = Float.NaN;
      assertRefused(37, bad, () -> Encoded.of(COMPRESSED_TENSORS, type, source(type, w), 2, 32, 1f));
    }
  }

  private static void assertRefused(long index, float value, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(NonFiniteException.class, e -> {
          assertThat(e.segment()).isZero();
          assertThat(e.index()).isEqualTo(index);
          assertThat(Float.compare(e.value(), value)).isZero();
        })
        .hasMessage("Invalid weight: " + value + " at element " + index + " of segment 0, must be finite");
  }

  @Test
  void buffersAreUsedFromTheirPositionAndLeftAsTheyWere() {
    float[] w = randomWeights(64, 3);
    Encoded expected = Encoded.of(MODELOPT, ElementType.F32, f32(w), 2, 32);
    ByteBuffer data = ByteBuffer.allocateDirect(1000).position(3).put(f32(w)).flip().position(3).asReadOnlyBuffer();
    ByteBuffer packed = ByteBuffer.allocateDirect(50).position(5);
    ByteBuffer scales = ByteBuffer.allocateDirect(50).position(7);
    FloatBuffer out = FloatBuffer.allocate(100).position(9);

    assertThat(Nvfp4.amax(ElementType.F32, data)).isEqualTo(Nvfp4.amax(ElementType.F32, f32(w)));
    Nvfp4.encode(MODELOPT, ElementType.F32, data, 2, 32, expected.globalScale(), packed, scales, null);
    Nvfp4.decode(MODELOPT, packed, scales, 2, 32, expected.globalScale(), out);

    assertThat(data.position()).isEqualTo(3);
    assertThat(packed.position()).isEqualTo(5);
    assertThat(scales.position()).isEqualTo(7);
    assertThat(out.position()).isEqualTo(9);
    assertThat(packed.order()).isEqualTo(ByteOrder.BIG_ENDIAN);
    byte[] bytes = new byte[50];
    packed.get(0, bytes);
    assertThat(Arrays.copyOfRange(bytes, 5, 37)).isEqualTo(expected.packed());
    assertThat(Arrays.copyOfRange(bytes, 37, 50)).containsOnly(0);
    scales.get(0, bytes);
    assertThat(Arrays.copyOfRange(bytes, 7, 11)).isEqualTo(expected.scales());
    assertThat(Arrays.copyOfRange(out.array(), 9, 73)).isEqualTo(expected.decode(MODELOPT, 2, 32));
    assertThat(out.array()[73]).isZero();
  }

  @Test
  void refusesShapesAndBuffersThatDoNotFit() {
    ByteBuffer room = ByteBuffer.allocate(16);
    assertInvalid("Invalid shape: [2, 24], columns must be a multiple of 16 and neither side negative",
        () -> Nvfp4.encode(MODELOPT, ElementType.BF16, ByteBuffer.allocate(96), 2, 24, 1, room, room, null));
    assertInvalid("Invalid shape: [-1, 16], columns must be a multiple of 16 and neither side negative",
        () -> Nvfp4.encodeZero(MODELOPT, -1, 16, room, room));
    assertInvalid("Invalid data: 62 bytes, [2, 16] of BF16 has 64",
        () -> Nvfp4.encode(MODELOPT, ElementType.BF16, ByteBuffer.allocate(62), 2, 16, 1, room, room, null));
    assertInvalid("Invalid buffer: packed has room for 16 elements, needs 24",
        () -> Nvfp4.encode(MODELOPT, ElementType.BF16, ByteBuffer.allocate(96), 3, 16, 1, room, room, null));
    assertInvalid("Invalid buffer: scales has room for 1 elements, needs 2",
        () -> Nvfp4.encodeZero(MODELOPT, 2, 16, room, ByteBuffer.allocate(1)));
    assertInvalid("Invalid buffer: out has room for 31 elements, needs 32",
        () -> Nvfp4.decode(MODELOPT, room, room, 2, 16, 1, FloatBuffer.allocate(31)));
    assertInvalid("Invalid data: 5 bytes are no whole number of BF16 elements",
        () -> Nvfp4.amax(ElementType.BF16, ByteBuffer.allocate(5)));
    for (float scale : new float[] {0, -1, Float.NaN, Float.POSITIVE_INFINITY}) {
      assertInvalid("Invalid global scale: " + scale + ", must be positive and finite",
          () -> Nvfp4.encode(MODELOPT, ElementType.BF16, ByteBuffer.allocate(64), 2, 16, scale, room, room, null));
      assertInvalid("Invalid global scale: " + scale + ", must be positive and finite",
          () -> Nvfp4.decode(MODELOPT, room, room, 2, 16, scale, FloatBuffer.allocate(32)));
    }
  }

  private static void assertInvalid(String message, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  void gaussianWeightsLoseAboutNineThousandthsOfTheirEnergy() {
    float[] w = randomWeights(1 << 16, 4);
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      ErrorSums sums = Encoded.of(recipe, ElementType.BF16, bf16(w), 16, 1 << 12).sums();
      assertThat(sums.squaredErrors() / sums.squares()).isBetween(0.0088, 0.0093);
    }
  }

  private static float[] randomWeights(int elements, long seed) {
    Random random = new Random(seed);
    float[] w = new float[elements];
    for (int i = 0; i < elements; i++) {
      w[i] = (float) (random.nextGaussian() * 0.02);
    }

    return w;
  }

  private static ByteBuffer source(ElementType type, float... values) {
    return switch (type) {
      case BF16 -> bf16(values);
      case F16 -> f16(values);
      case F32 -> f32(values);
    };
  }
}
