package org.sparkfp4.functions;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.Nvfp4Kernel;

/** {@link Nvfp4Quantize} on columns: kernels read the payloads and write the results where they lie. */
final class QuantizeEvaluator implements ArrowEvaluator {
  private static final int COLS = 7;
  private static final int AMAX = 8;
  private static final int IMPORTANCE = 9;
  private final Nvfp4Recipe recipe;
  private final ScaleSearch search;
  private final Double damping;
  private final Field resultField;
  private final Nvfp4Kernel kernel;
  private final BufferAllocator allocator;
  private final BinaryResult packed;
  private final BinaryResult scales;

  QuantizeEvaluator(Nvfp4Recipe recipe, ScaleSearch search, Nvfp4Kernel kernel, BufferAllocator allocator) {
    this(recipe, search, null, kernel, allocator);
  }

  /** @param damping of {@link Nvfp4Gptq}; null for {@link Nvfp4Quantize} */
  QuantizeEvaluator(
      Nvfp4Recipe recipe, ScaleSearch search, Double damping, Nvfp4Kernel kernel, BufferAllocator allocator) {
    this.recipe = recipe;
    this.search = search;
    this.damping = damping;
    this.resultField = ArrowUtils.toArrowField(
        "nvfp4", damping == null ? Nvfp4Quantize.RETURN_TYPE : Nvfp4Gptq.RETURN_TYPE, true, null, false);
    this.kernel = kernel;
    this.allocator = allocator;
    this.packed = new BinaryResult("packed", allocator, bytes -> kernel.results(allocator, bytes));
    this.scales = new BinaryResult("scales", allocator, bytes -> kernel.results(allocator, bytes));
  }

  @Override
  public ColumnVector evaluate(int rows, ColumnVector[] arguments) {
    StructVector result = (StructVector) resultField.createVector(allocator);
    try (NativeScratch scratch = new NativeScratch(allocator)) {
      fill(result, units(rows, new ArgumentReader(arguments, scratch), factory(scratch)));
      return new ArrowColumnVector(result);
    } catch (RuntimeException | Error e) {
      result.close();
      throw e;
    }
  }

  @Override
  public void close() {
    packed.close();
    scales.close();
  }

  private UnitFactory factory(NativeScratch scratch) {
    return damping == null
        ? WeightUnit::new
        : (segments, cols, amax, importance) ->
            GptqUnit.of(segments, cols, amax, importance, damping, kernel.tier(), scratch);
  }

  /** All units first, because the buffers of a column must be large enough before its first value is written. */
  static WeightUnit[] units(int rows, UnitArguments reader, UnitFactory factory) {
    WeightUnit[] units = new WeightUnit[rows];
    for (int row = 0; row < rows; row++) {
      Segments segments = reader.segments(row);
      if (segments != null) {
        units[row] = factory.unit(
            segments, reader.longAt(COLS, row), reader.floatAt(AMAX, row), reader.importanceAt(IMPORTANCE, row));
      }
    }

    return units;
  }

  private void fill(StructVector result, WeightUnit[] units) {
    long packedBytes = 0;
    long scalesBytes = 0;
    for (WeightUnit unit : units) {
      packedBytes += unit == null ? 0 : unit.packedBytes();
      scalesBytes += unit == null ? 0 : unit.scalesBytes();
    }

    // Arrow would begin with room for thousands of rows; a batch here has one or a few.
    result.setInitialCapacity(Math.max(1, units.length));
    packed.begin(units.length, packedBytes);
    scales.begin(units.length, scalesBytes);
    Float4Vector amax = result.getChild("amax", Float4Vector.class);
    ListVector sumSquares = result.getChild("sum_squares", ListVector.class);
    ListVector squaredErrors = result.getChild("squared_error", ListVector.class);
    Float4Vector globalScale = result.getChild("global_scale", Float4Vector.class);
    ListVector requantized = result.getChild("requantized", ListVector.class);
    ListVector gptqRows = damping == null ? null : result.getChild("gptq_rows", ListVector.class);
    for (int row = 0; row < units.length; row++) {
      WeightUnit unit = units[row];
      if (unit == null) {
        packed.appendNull();
        scales.appendNull();
        continue;
      }

      WeightUnit.Encoded encoded = unit.encode(
          kernel, recipe, search, packed.append(unit.packedBytes()), scales.append(unit.scalesBytes()));
      amax.setSafe(row, encoded.amax());
      set(sumSquares, row, encoded.sumSquares());
      set(squaredErrors, row, encoded.squaredErrors());
      globalScale.setSafe(row, encoded.globalScale());
      set(requantized, row, encoded.requantized());
      if (gptqRows != null) {
        set(gptqRows, row, encoded.gptqRows());
      }

      result.setIndexDefined(row);
    }

    packed.load(result.getChild("packed", VarBinaryVector.class));
    scales.load(result.getChild("scales", VarBinaryVector.class));
    result.setValueCount(units.length);
  }

  private static void set(ListVector lists, int row, double[] values) {
    Float8Vector elements = (Float8Vector) lists.getDataVector();
    int start = lists.startNewValue(row);
    for (int i = 0; i < values.length; i++) {
      elements.setSafe(start + i, values[i]);
    }

    lists.endValue(row, values.length);
  }

  private static void set(ListVector lists, int row, long[] values) {
    BigIntVector elements = (BigIntVector) lists.getDataVector();
    int start = lists.startNewValue(row);
    for (int i = 0; i < values.length; i++) {
      elements.setSafe(start + i, values[i]);
    }

    lists.endValue(row, values.length);
  }
}
