package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.arrow.memory.AllocationListener;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;

class QuantizeEvaluatorTest {
  private final BufferAllocator source = new RootAllocator();
  private final List<Long> allocated = new ArrayList<>();
  private final BufferAllocator allocator = new RootAllocator(new AllocationListener() {
    @Override
    public void onAllocation(long size) {
      allocated.add(size);
    }
  }, Long.MAX_VALUE);
  private final ArrowEvaluator evaluator =
      new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto").open(allocator);

  /** Closing an allocator throws if anything of it is in use: each test is a leak test. */
  @AfterEach
  void everythingIsGivenBack() {
    evaluator.close();
    allocator.close();
    source.close();
  }

  @Test
  void aBatchOfManyRowsGivesTheReferencesBytes() {
    List<WeightRow> rows = IntStream.range(0, 20)
        .mapToObj(unit -> unit % 6 == 1 ? WeightRow.random(unit).withoutData() : WeightRow.random(unit))
        .map(row -> row.cols() == 48 ? row.withAmax(1.5f) : row)
        .toList();
    assertGivesReference(rows, WeightVectors.arguments(rows, source));
  }

  @Test
  void slicesOfVectorsAreReadWhereTheyBegin() {
    List<WeightRow> rows = IntStream.range(0, 10).mapToObj(WeightRow::random).toList();
    ColumnVector[] arguments = WeightVectors.arguments(rows, source);
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = WeightVectors.withoutFirst(arguments[i], rows.size(), source);
    }

    assertGivesReference(rows.subList(1, rows.size()), arguments);
  }

  @Test
  void batchesWithoutValuesAndWithoutRowsWork() {
    List<WeightRow> nothing = List.of(WeightRow.random(0).withoutData(), WeightRow.random(1).withoutData());
    assertGivesReference(nothing, WeightVectors.arguments(nothing, source));
    assertGivesReference(List.of(), WeightVectors.arguments(List.of(), source));
  }

  @Test
  void vectorsOfTheHeapAndLiteralsAreCopied() {
    WeightRow row = WeightRow.random(9);
    OnHeapColumnVector payload = new OnHeapColumnVector(1, DataTypes.BinaryType);
    payload.putByteArray(0, row.members()[0]);
    ConstantColumnVector dtype = new ConstantColumnVector(1, DataTypes.StringType);
    dtype.setUtf8String(UTF8String.fromString(row.dtype()));
    ConstantColumnVector cols = new ConstantColumnVector(1, DataTypes.LongType);
    cols.setLong(row.cols());
    assertGivesReference(List.of(row), new ColumnVector[] {
        payload, absent(), absent(), absent(), absent(), absent(), dtype, cols, absent(), absent()});
  }

  @Test
  void resultsLieInTheSameMemoryBatchAfterBatch() {
    WeightRow row = WeightRow.constant(1f, 1 << 20, 1 << 10);
    long packedBytes = 1 << 19;
    long scalesBytes = 1 << 16;
    long first = packedAddress(row);
    assertThat(allocated).filteredOn(size -> size >= scalesBytes).containsExactlyInAnyOrder(packedBytes, scalesBytes);
    allocated.clear();

    assertThat(packedAddress(row)).isEqualTo(first);
    assertThat(packedAddress(WeightRow.constant(1f, 1 << 19, 1 << 10))).as("a smaller batch").isEqualTo(first);
    assertThat(allocated).filteredOn(size -> size >= scalesBytes).isEmpty();
    assertThat(allocated.stream().mapToLong(Long::longValue).sum()).as("memory beside the bytes").isLessThan(1 << 12);
  }

  @Test
  void resultsThatAreRetainedStayAsTheyAre() {
    WeightRow row = WeightRow.random(6);
    ArrowBuf kept;
    long first;
    try (ColumnVector result = evaluate(row)) {
      ArrowBuf packed = ArrowBytes.of(result.getChild(0), 0);
      first = packed.memoryAddress();
      kept = packed.getReferenceManager().retain(packed, allocator);
    }

    assertThat(packedAddress(WeightRow.random(7))).isNotEqualTo(first);
    byte[] bytes = new byte[(int) kept.capacity()];
    kept.getBytes(0, bytes);
    assertThat(bytes).isEqualTo(row.reference(Nvfp4Recipe.MODELOPT).packed());
    kept.close();
    assertThat(packedAddress(WeightRow.random(0))).as("free again").isEqualTo(first);
  }

  @Test
  void memoryThatWasMovedToAnotherAllocatorIsNotUsedAgain() {
    WeightRow row = WeightRow.random(6);
    try (BufferAllocator consumer = allocator.newChildAllocator("consumer", 0, Long.MAX_VALUE)) {
      ArrowBuf moved;
      try (ColumnVector result = evaluate(row)) {
        ArrowBuf packed = ArrowBytes.of(result.getChild(0), 0);
        moved = packed.getReferenceManager().transferOwnership(packed, consumer).getTransferredBuffer();
      }

      assertThat(packedAddress(WeightRow.random(7))).isNotEqualTo(moved.memoryAddress());
      moved.close();
    }
  }

  @Test
  void whatTheKernelRefusesComesThroughAndLeaksNothing() {
    WeightRow bad = WeightRow.random(5).withNaN(1, 3);
    List<WeightRow> rows = List.of(WeightRow.random(5), bad);
    ColumnVector[] arguments = WeightVectors.arguments(rows, source);
    assertThatThrownBy(() -> evaluator.evaluate(2, arguments))
        .isInstanceOf(NonFiniteException.class)
        .hasMessageContaining("element 3 of segment 1");
    close(arguments);
  }

  @Test
  void viewsOfBytesSayWhatTheyAreNot() {
    assertThatThrownBy(() -> ArrowBytes.of(absent(), 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Cannot view bytes of").hasMessageContaining("ConstantColumnVector");
    ColumnVector[] arguments = WeightVectors.arguments(List.of(WeightRow.random(0)), source);
    assertThatThrownBy(() -> ArrowBytes.of(arguments[1], 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Cannot view bytes of row 0: the value is null");
    close(arguments);
  }

  private void assertGivesReference(List<WeightRow> rows, ColumnVector[] arguments) {
    try (ColumnVector result = evaluator.evaluate(rows.size(), arguments)) {
      assertThat(result.dataType()).isEqualTo(Nvfp4Quantize.RETURN_TYPE);
      for (int row = 0; row < rows.size(); row++) {
        assertThat(QuantizedRow.of(result, row)).as("row %d", row)
            .isEqualTo(rows.get(row).reference(Nvfp4Recipe.MODELOPT));
      }
    }

    close(arguments);
  }

  @Test
  void resultsLieInMemoryThatTheKernelGave() {
    List<Long> given = new ArrayList<>();
    Nvfp4Kernel reference = Nvfp4Kernels.forTier("java");
    Nvfp4Kernel kernel = (Nvfp4Kernel) Proxy.newProxyInstance(
        getClass().getClassLoader(), new Class<?>[] {Nvfp4Kernel.class}, (proxy, method, arguments) -> {
          Object result = method.invoke(reference, arguments);
          if (method.getName().equals("results")) {
            given.add(((ArrowBuf) result).memoryAddress());
          }

          return result;
        });
    WeightRow row = WeightRow.random(3);
    try (QuantizeEvaluator own = new QuantizeEvaluator(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, kernel, allocator)) {
      for (int batch = 0; batch < 2; batch++) {
        ColumnVector[] arguments = WeightVectors.arguments(List.of(row), source);
        try (ColumnVector result = own.evaluate(1, arguments)) {
          assertThat(QuantizedRow.of(result, 0)).isEqualTo(row.reference(Nvfp4Recipe.MODELOPT));
          assertThat(given).containsExactly(
              ArrowBytes.of(result.getChild(0), 0).memoryAddress(), ArrowBytes.of(result.getChild(1), 0).memoryAddress());
        }

        close(arguments);
      }
    }
  }

  private ColumnVector evaluate(WeightRow row) {
    ColumnVector[] arguments = WeightVectors.arguments(List.of(row), source);
    ColumnVector result = evaluator.evaluate(1, arguments);
    close(arguments);
    return result;
  }

  private long packedAddress(WeightRow row) {
    try (ColumnVector result = evaluate(row)) {
      return ArrowBytes.of(result.getChild(0), 0).memoryAddress();
    }
  }

  private static ColumnVector absent() {
    ConstantColumnVector column = new ConstantColumnVector(1, DataTypes.BinaryType);
    column.setNull();
    return column;
  }

  private static void close(ColumnVector[] columns) {
    for (ColumnVector column : columns) {
      column.close();
    }
  }
}
