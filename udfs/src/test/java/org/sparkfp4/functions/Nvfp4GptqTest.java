package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.InvalidImportanceException;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.gptq.Inputs;

class Nvfp4GptqTest {
  private static final int COLS = 64;
  private static final int TOKENS = 512;

  private final Inputs inputs = inputs();
  private final byte[] hessians = hessians(inputs.hessian(0, TOKENS), inputs.hessian(TOKENS, 2 * TOKENS));

  private static Inputs inputs() {
    Random random = new Random(1);
    return Inputs.rotated(2 * TOKENS, 1.5, Inputs.scales(COLS, 0.5, random), random);
  }

  @ParameterizedTest
  @EnumSource
  void membersGetCodesAndSumsOfTheirOwn(Nvfp4Recipe recipe) {
    WeightRow row = unit(3);
    Row both = call(new Nvfp4Gptq(recipe, 0.05, "auto"), row, hessians);
    Row searched = call(new Nvfp4Quantize(recipe, ScaleSearch.WEIGHTED, "auto"), row, local());

    assertThat(both.<long[]>getAs(7)).containsExactly(5, 6, 7);
    assertThat(both.<byte[]>getAs(0)).isNotEqualTo(searched.<byte[]>getAs(0));
    assertThat(both.<byte[]>getAs(1)).isEqualTo(searched.<byte[]>getAs(1));
    assertThat(both.getFloat(5)).isEqualTo(searched.getFloat(5));
    assertThat(both.<double[]>getAs(3)).isEqualTo(searched.<double[]>getAs(3));
    // the plain errors rise: that is the price of a smaller one of the outputs
    for (int member = 0; member < 3; member++) {
      double error = both.<double[]>getAs(4)[member];
      assertThat(error)
          .isGreaterThan(searched.<double[]>getAs(4)[member])
          .isEqualTo(squaredError(recipe, row, both, member));
    }
  }

  @Test
  void columnsGiveTheBytesOfRows() {
    WeightRow row = unit(2);
    Row expected = call(new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0.05, "auto"), row, hessians);
    try (BufferAllocator allocator = new RootAllocator();
        ArrowEvaluator evaluator = new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0.05, "auto").open(allocator);
        VarBinaryVector importance = new VarBinaryVector("importance", allocator)) {
      importance.setSafe(0, hessians);
      importance.setValueCount(1);
      ColumnVector[] arguments = WeightVectors.arguments(List.of(row), allocator);
      arguments[9].close();
      arguments[9] = new ArrowColumnVector(importance);
      try (ColumnVector result = evaluator.evaluate(1, arguments)) {
        assertThat(QuantizedRow.of(result, 0)).isEqualTo(QuantizedRow.ofCall(expected));
        ColumnarArray rows = result.getStruct(0).getArray(7);
        assertThat(rows.toLongArray()).isEqualTo(expected.<long[]>getAs(7));
      }

      for (ColumnVector argument : arguments) {
        argument.close();
      }
    }
  }

  @Test
  void withoutHessiansItIsAWeightedSearch() {
    WeightRow row = unit(2);
    Nvfp4Gptq gptq = new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0.05, "auto");
    Nvfp4Quantize search = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.WEIGHTED, "auto");
    for (byte[] importance : new byte[][] {null, local()}) {
      Row result = call(gptq, row, importance);
      assertThat(QuantizedRow.ofCall(result)).isEqualTo(QuantizedRow.ofCall(call(search, row, importance)));
      assertThat(result.<long[]>getAs(7)).containsExactly(0, 0);
    }
  }

  @Test
  void heldOutInputsOfAnotherKindKeepTheSearchsCodes() {
    WeightRow row = unit(1);
    FloatBuffer other = FloatBuffer.allocate(COLS * COLS);
    for (int i = 0; i < COLS; i++) {
      other.put(i * COLS + i, 1);
    }

    Row result = call(
        new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0.05, "auto"), row, hessians(inputs.hessian(0, TOKENS), other));
    assertThat(QuantizedRow.ofCall(result)).isEqualTo(QuantizedRow.ofCall(
        call(new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.WEIGHTED, "auto"), row, local())));
    assertThat(result.<long[]>getAs(7)).containsExactly(0);
  }

  @Test
  void whatCannotBeIsNamedAndLeaksNothing() {
    long before = ArrowUtils.rootAllocator().getAllocatedMemory();
    Nvfp4Gptq gptq = new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0.05, "auto");
    byte[] bad = hessians.clone();
    ByteBuffer.wrap(bad).order(ByteOrder.LITTLE_ENDIAN).putFloat(4 * (COLS * COLS + 2 * COLS + 5), Float.NaN);
    assertThatThrownBy(() -> call(gptq, unit(1), bad))
        .isInstanceOf(InvalidImportanceException.class)
        .hasMessageContaining("Invalid importance: NaN of column 5");
    assertThatThrownBy(() -> call(gptq, unit(1), new byte[77]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Invalid importance: 77 bytes");
    assertThatThrownBy(() -> new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0, "auto"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid damping: 0.0, must be above 0 and at most 1");
    assertThat(ArrowUtils.rootAllocator().getAllocatedMemory()).isEqualTo(before);
  }

  private static Row call(Nvfp4Gptq function, WeightRow row, byte[] importance) {
    byte[][] members = row.members();
    return function.call(
        members[0], members[1], members[2], null, null, null, row.dtype(), row.cols(), null, importance);
  }

  private static Row call(Nvfp4Quantize function, WeightRow row, byte[] importance) {
    byte[][] members = row.members();
    return function.call(
        members[0], members[1], members[2], null, null, null, row.dtype(), row.cols(), null, importance);
  }

  /** Members of 5, 6 and 7 rows of normal weights. */
  private static WeightRow unit(int members) {
    byte[][] data = new byte[3][];
    Random random = new Random(members);
    for (int member = 0; member < members; member++) {
      FloatBuffer weights = FloatBuffer.allocate((5 + member) * COLS);
      for (int i = 0; i < weights.capacity(); i++) {
        weights.put(i, (float) random.nextGaussian());
      }

      data[member] = bytes(weights);
    }

    return new WeightRow(data, "F32", (long) COLS, null);
  }

  private static double squaredError(Nvfp4Recipe recipe, WeightRow row, Row result, int member) {
    int blocksBefore = member == 0 ? 0 : member == 1 ? 5 * COLS / 16 : 11 * COLS / 16;
    FloatBuffer weights = ByteBuffer.wrap(row.members()[member]).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    ByteBuffer codes = ByteBuffer.wrap(result.<byte[]>getAs(0)).order(ByteOrder.LITTLE_ENDIAN);
    ErrorSums sums = new ErrorSums();
    float[] w = new float[16];
    for (int block = 0; block < (5 + member) * COLS / 16; block++) {
      weights.get(16 * block, w);
      byte scale = result.<byte[]>getAs(1)[blocksBefore + block];
      sums.addBlock(w, codes.getLong(8 * (blocksBefore + block)), recipe.dequantFactor(scale, result.getFloat(5)));
    }

    return sums.squaredErrors();
  }

  private byte[] local() {
    FloatBuffer hessian = inputs.hessian(0, TOKENS);
    FloatBuffer local = FloatBuffer.allocate(16 * COLS);
    for (int i = 0; i < 16 * COLS; i++) {
      local.put(i, hessian.get(i / 16 * COLS + i / 256 * 16 + i % 16));
    }

    return bytes(local);
  }

  private static byte[] hessians(FloatBuffer own, FloatBuffer heldOut) {
    return ByteBuffer.allocate(8 * COLS * COLS).put(bytes(own)).put(bytes(heldOut)).array();
  }

  private static byte[] bytes(FloatBuffer values) {
    ByteBuffer bytes = ByteBuffer.allocate(values.capacity() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(values.duplicate().rewind());
    return bytes.array();
  }
}
