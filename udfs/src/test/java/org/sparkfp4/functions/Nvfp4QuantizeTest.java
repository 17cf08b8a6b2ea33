package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.util.ArrowUtils;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.formats.InvalidImportanceException;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;

class Nvfp4QuantizeTest {
  private final Nvfp4Quantize function = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto");

  @ParameterizedTest
  @EnumSource
  void rowsGiveTheReferencesBytes(Nvfp4Recipe recipe) {
    Nvfp4Quantize quantize = new Nvfp4Quantize(recipe, ScaleSearch.RTN, "auto");
    for (int unit = 0; unit < 12; unit++) {
      WeightRow row = WeightRow.random(unit);
      assertThat(call(quantize, row)).as("unit %d", unit).isEqualTo(row.reference(recipe));
    }
  }

  @Test
  void aKnownAmaxIsUsed() {
    WeightRow row = WeightRow.random(4).withAmax(3f);
    assertThat(call(function, row)).isEqualTo(row.reference(Nvfp4Recipe.MODELOPT));
    assertThat(call(function, row).amax()).isEqualTo(3f);
  }

  @Test
  void zerosAndNoRowsAreTensorsToo() {
    WeightRow zeros = WeightRow.constant(0, 64, 32);
    assertThat(call(function, zeros)).isEqualTo(zeros.reference(Nvfp4Recipe.MODELOPT));
    QuantizedRow empty = call(function, WeightRow.constant(0, 0, 32));
    assertThat(empty.packed()).isEmpty();
    assertThat(empty.scales()).isEmpty();
    assertThat(empty.sumSquares()).containsExactly(0.0);
  }

  @Test
  void noDataGivesNoResult() {
    assertThat(function.call(null, new byte[32], null, null, null, null, "BF16", 16L, null, null)).isNull();
  }

  @Test
  void theRowPathGivesBackItsMemory() {
    long before = ArrowUtils.rootAllocator().getAllocatedMemory();
    call(function, WeightRow.random(2));
    WeightRow bad = WeightRow.random(2).withNaN(0, 0);
    assertThatThrownBy(() -> call(function, bad)).isInstanceOf(NonFiniteException.class);
    assertThat(ArrowUtils.rootAllocator().getAllocatedMemory()).isEqualTo(before);
  }

  @Test
  void aWeightThatIsNotFiniteIsNamed() {
    WeightRow row = WeightRow.random(5).withNaN(2, 21);
    assertThatThrownBy(() -> call(function, row))
        .isInstanceOf(NonFiniteException.class)
        .hasMessageContaining("NaN at element 21 of segment 2");
  }

  @Test
  void argumentsThatCannotBeAreNamed() {
    byte[] data = new byte[64];
    refused(() -> function.call(data, null, null, null, null, null, "I8", 16L, null, null),
        "Invalid dtype: I8");
    refused(() -> function.call(data, null, null, null, null, null, null, 16L, null, null),
        "Invalid dtype: null");
    refused(() -> function.call(data, null, null, null, null, null, "BF16", 24L, null, null),
        "Invalid cols: 24, must be a positive multiple of 16");
    refused(() -> function.call(data, null, null, null, null, null, "BF16", 0L, null, null), "Invalid cols: 0");
    refused(() -> function.call(data, null, null, null, null, null, "BF16", null, null, null), "Invalid cols: null");
    refused(() -> function.call(data, new byte[33], null, null, null, null, "BF16", 16L, null, null),
        "Invalid data1: 33 bytes are no whole number of BF16 elements");
    refused(() -> function.call(data, new byte[48], null, null, null, null, "BF16", 32L, null, null),
        "Invalid data1: 48 bytes are no whole number of rows of 32 BF16 elements");
    refused(() -> function.call(data, null, data, null, null, null, "BF16", 16L, null, null),
        "Invalid data2: not null though data1 is null");
    refused(() -> function.call(data, null, null, null, null, null, "BF16", 16L, -1f, null), "Invalid amax: -1.0");
  }

  /** Members share the statistics of their input; its length tells which they are. */
  @Test
  void weightedTakesItsImportance() {
    Nvfp4Quantize weighted = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.WEIGHTED, "auto");
    Nvfp4Quantize swept = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.SWEEP, "auto");
    byte[][] members = WeightRow.random(5).members();
    long cols = WeightRow.random(5).cols();
    String dtype = WeightRow.random(5).dtype();
    byte[] sweep = scales(swept, members, dtype, cols, null);
    assertThat(scales(weighted, members, dtype, cols, null)).isEqualTo(sweep);
    assertThat(scales(weighted, members, dtype, cols, importance((int) cols, 1))).isEqualTo(sweep);

    byte[] uneven = importance((int) cols, 100);
    byte[] scales = scales(weighted, members, dtype, cols, uneven);
    assertThat(scales).isNotEqualTo(sweep);
    byte[] ofLast = scales(weighted, new byte[][] {members[2], null, null}, dtype, cols, uneven, 3f);
    byte[] ofAll = scales(weighted, members, dtype, cols, uneven, 3f);
    assertThat(Arrays.copyOfRange(ofAll, ofAll.length - ofLast.length, ofAll.length)).isEqualTo(ofLast);
    assertThat(scales(swept, members, dtype, cols, uneven)).isEqualTo(sweep);
  }

  @Test
  void importanceThatCannotBeIsNamed() {
    Nvfp4Quantize weighted = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.WEIGHTED, "auto");
    byte[] data = new byte[64];
    refused(() -> weighted.call(data, null, null, null, null, null, "BF16", 32L, null, new byte[64]),
        "Invalid importance: 64 bytes, 32 columns have 128 or 2048");
    byte[] negative = importance(32, 1);
    ByteBuffer.wrap(negative).order(ByteOrder.LITTLE_ENDIAN).putFloat(4 * 20, -1);
    assertThatThrownBy(() -> weighted.call(data, null, null, null, null, null, "BF16", 32L, null, negative))
        .isInstanceOf(InvalidImportanceException.class)
        .hasMessageContaining("Invalid importance: -1.0 of column 20");
  }

  /** E[x^2]: 1, and that value for every fourth column. */
  private static byte[] importance(int cols, float fourth) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * cols).order(ByteOrder.LITTLE_ENDIAN);
    for (int col = 0; col < cols; col++) {
      bytes.putFloat(col % 4 == 0 ? fourth : 1);
    }

    return bytes.array();
  }

  private static byte[] scales(Nvfp4Quantize quantize, byte[][] members, String dtype, long cols, byte[] importance) {
    return scales(quantize, members, dtype, cols, importance, null);
  }

  private static byte[] scales(
      Nvfp4Quantize quantize, byte[][] members, String dtype, long cols, byte[] importance, Float amax) {
    return quantize.call(members[0], members[1], members[2], null, null, null, dtype, cols, amax, importance)
        .getAs(1);
  }

  @Test
  void anUnknownTierIsRefusedWhereItRuns() {
    Nvfp4Quantize quantize = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "sse9");
    assertThatThrownBy(() -> quantize.call(new byte[32], null, null, null, null, null, "BF16", 16L, null, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("sse9");
  }

  @Test
  void travelsToExecutors() throws Exception {
    call(function, WeightRow.random(0));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(function);
    }

    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      WeightRow row = WeightRow.random(1);
      assertThat(call((Nvfp4Quantize) in.readObject(), row)).isEqualTo(row.reference(Nvfp4Recipe.MODELOPT));
    }
  }

  private static void refused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessageContaining(message);
  }

  private static QuantizedRow call(Nvfp4Quantize quantize, WeightRow row) {
    byte[][] members = row.members();
    return QuantizedRow.ofCall(
        quantize.call(members[0], members[1], members[2], null, null, null, row.dtype(), row.cols(), row.amax(),
        null));
  }
}
