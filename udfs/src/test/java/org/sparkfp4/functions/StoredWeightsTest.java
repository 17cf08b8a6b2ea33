package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.SourceScheme;

/** Units of weights that are stored as codes and scales. */
class StoredWeightsTest {
  private static final int COLS = 64;
  private static final int[] ROWS = {48, 33};

  private final Random random = new Random(7);

  @ParameterizedTest
  @ValueSource(strings = {"E4M3/F32/32x32", "E4M3/E8M0/16x64", "E4M3/BF16/1x*", "E4M3/F32/*x*", "INT4/BF16/1x32",
      "INT4/F16/1x16", "E2M1/E8M0/1x32"})
  void rowsAndColumnsGiveTheReferencesBytes(String text) {
    SourceScheme scheme = SourceScheme.parse(text);
    byte[][] data = {codes(scheme, 0), codes(scheme, 1), null};
    byte[][] scales = {scales(scheme, 0), scales(scheme, 1), null};
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      QuantizedRow expected = reference(recipe, scheme, data, scales);
      Nvfp4Quantize function = new Nvfp4Quantize(recipe, ScaleSearch.RTN, "auto");

      QuantizedRow row = QuantizedRow.ofCall(function.call(
          data[0], data[1], null, scales[0], scales[1], null, text, (long) COLS, null, null));
      assertSame(row, expected);
      assertThat(new Nvfp4Amax("auto").call(
          data[0], data[1], null, scales[0], scales[1], null, text, (long) COLS)).isEqualTo(expected.amax());
      assertThat(QuantizedRow.ofCall(function.call(
          data[0], data[1], null, scales[0], scales[1], null, text, (long) COLS, row.amax(), null))).isEqualTo(row);
      try (BufferAllocator allocator = new RootAllocator();
          ArrowEvaluator evaluator = function.open(allocator);
          ColumnVector column = evaluator.evaluate(1, columns(data, scales, text))) {
        assertThat(QuantizedRow.of(column, 0)).isEqualTo(row);
      }
    }
  }

  private static void assertSame(QuantizedRow row, QuantizedRow expected) {
    assertThat(row.packed()).isEqualTo(expected.packed());
    assertThat(row.scales()).isEqualTo(expected.scales());
    assertThat(row.amax()).isEqualTo(expected.amax());
    assertThat(row.globalScale()).isEqualTo(expected.globalScale());
    assertThat(row.requantized()).isEqualTo(expected.requantized());
    assertThat(row.sumSquares()).hasSize(2).allMatch(sum -> sum > 0);
  }

  private static QuantizedRow reference(Nvfp4Recipe recipe, SourceScheme scheme, byte[][] data, byte[][] scales) {
    float amax = 0;
    for (int m = 0; m < ROWS.length; m++) {
      amax = Math.max(amax, scheme.isMxfp4()
          ? Mxfp4.amax(Mxfp4.largestExponent(ByteBuffer.wrap(scales[m])))
          : Nvfp4.amax(scheme.stored(), ByteBuffer.wrap(data[m]), ByteBuffer.wrap(scales[m]), ROWS[m], COLS));
    }

    ByteBuffer packed = ByteBuffer.allocate((ROWS[0] + ROWS[1]) * COLS / 2);
    ByteBuffer out = ByteBuffer.allocate((ROWS[0] + ROWS[1]) * COLS / Nvfp4.BLOCK);
    float globalScale = scheme.isMxfp4()
        ? Mxfp4.globalScale(recipe, Mxfp4.exponent(amax))
        : recipe.globalScale(amax, ElementType.F32);
    List<Long> requantized = new ArrayList<>();
    for (int m = 0; m < ROWS.length; m++) {
      ByteBuffer codes = ByteBuffer.wrap(data[m]);
      ByteBuffer from = ByteBuffer.wrap(scales[m]);
      if (scheme.isMxfp4()) {
        requantized.add(Mxfp4.cast(recipe, codes, from, ROWS[m], COLS, Mxfp4.exponent(amax), packed, out, null));
      } else {
        Nvfp4.encode(recipe, scheme.stored(), codes, from, ROWS[m], COLS, globalScale, packed, out, null);
        requantized.add(0L);
      }

      packed.position(packed.position() + ROWS[m] * COLS / 2);
      out.position(out.position() + ROWS[m] * COLS / Nvfp4.BLOCK);
    }

    return new QuantizedRow(packed.array(), out.array(), amax, List.of(), List.of(), globalScale, requantized);
  }

  @Test
  void blocksFarBelowTheLargestAreCountedByMember() {
    SourceScheme scheme = SourceScheme.parse("E2M1/E8M0/1x32");
    byte[][] data = {codes(scheme, 0), codes(scheme, 1), null};
    byte[][] scales = {scales(scheme, 0), scales(scheme, 1), null};
    scales[1][3] = 80;
    scales[1][4] = 81;

    assertThat(QuantizedRow.ofCall(new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto").call(
        data[0], data[1], null, scales[0], scales[1], null, "E2M1/E8M0/1x32", (long) COLS, null,
        null)).requantized())
        .containsExactly(0L, 4L);
  }

  @Test
  void aScaleThatIsNoNumberIsNamedByMemberAndElement() {
    for (String text : List.of("E2M1/E8M0/1x32", "E4M3/E8M0/1x32")) {
      SourceScheme scheme = SourceScheme.parse(text);
      byte[][] data = {codes(scheme, 0), codes(scheme, 1), null};
      byte[][] scales = {scales(scheme, 0), scales(scheme, 1), null};
      Float amax = new Nvfp4Amax("auto").call(
          data[0], data[1], null, scales[0], scales[1], null, text, (long) COLS);
      scales[1][7] = (byte) 0xFF;
      for (Float known : new Float[] {null, amax}) {
        assertThatThrownBy(() -> new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto").call(
            data[0], data[1], null, scales[0], scales[1], null, text, (long) COLS, known, null))
            .isInstanceOf(NonFiniteException.class)
            .hasMessageContaining("NaN at element " + 7 * 32 + " of segment 1");
      }

      assertThat(new Nvfp4Amax("auto").call(
          data[0], data[1], null, scales[0], scales[1], null, text, (long) COLS)).isNaN();
    }
  }

  @Test
  void argumentsThatCannotBeAreNamed() {
    Nvfp4Quantize f = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto");
    byte[] data = new byte[64];
    byte[] scale = new byte[2];
    refused(() -> f.call(data, null, null, null, null, null, "INT4/BF16/1x32", 32L, null, null),
        "Invalid scale0: null, [4, 32] of INT4/BF16/1x32 needs 8 bytes");
    refused(() -> f.call(data, null, null, scale, null, null, "INT4/BF16/1x32", 32L, null, null),
        "Invalid scale0: 2 bytes, [4, 32] of INT4/BF16/1x32 needs 8 bytes");
    refused(() -> f.call(data, null, null, scale, null, null, "BF16", 32L, null, null),
        "Invalid scale0: not null though BF16 has no scales");
    refused(() -> f.call(data, null, null, null, scale, null, "INT4/BF16/1x32", 32L, null, null),
        "Invalid scale1: not null though data1 or a scale before is null");
    refused(() -> f.call(new byte[63], null, null, scale, null, null, "INT4/BF16/1x32", 32L, null, null),
        "Invalid payload (data0): 63 bytes are no whole number of rows of 32 INT4/BF16/1x32 elements");
    refused(() -> new Nvfp4Amax("auto").call(data, null, null, scale, null, null, "INT4/BF16/1x32", null),
        "Invalid cols: null");
  }

  private static void refused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessageContaining(message);
  }

  private byte[] codes(SourceScheme scheme, int member) {
    byte[] codes = new byte[Math.toIntExact(scheme.dataBytes(ROWS[member], COLS))];
    random.nextBytes(codes);
    for (int i = 0; i < codes.length; i++) {
      // no NaN among them
      codes[i] = (codes[i] & 0x7F) == 0x7F ? 0x11 : codes[i];
    }

    return codes;
  }

  private byte[] scales(SourceScheme scheme, int member) {
    byte[] scales = new byte[Math.toIntExact(scheme.scaleBytes(ROWS[member], COLS))];
    int width = scheme.stored().scales().bytes();
    for (int i = 0; i < scales.length; i++) {
      // the byte with the exponent: from 2^-7 to 2^0, or up to a few more in F16
      scales[i] = (byte) (i % width < width - 1 ? random.nextInt(128) : width == 1 ? 120 + i % 8 : 0x3C + i % 3);
    }

    return scales;
  }

  private static ColumnVector[] columns(byte[][] data, byte[][] scales, String scheme) {
    ConstantColumnVector text = new ConstantColumnVector(1, DataTypes.StringType);
    text.setUtf8String(UTF8String.fromString(scheme));
    ConstantColumnVector cols = new ConstantColumnVector(1, DataTypes.LongType);
    cols.setLong(COLS);
    return new ColumnVector[] {
      bytes(data[0]), bytes(data[1]), bytes(null), bytes(scales[0]), bytes(scales[1]), bytes(null), text, cols,
      bytes(null), bytes(null)
    };
  }

  private static ColumnVector bytes(byte[] value) {
    OnHeapColumnVector column = new OnHeapColumnVector(1, DataTypes.BinaryType);
    if (value == null) {
      column.putNull(0);
    } else {
      column.putByteArray(0, value);
    }

    return column;
  }
}
