package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.HostColumnVector;
import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import ai.rapids.cudf.Table;
import com.nvidia.spark.RapidsUDF;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernels;

/**
 * The dequantizing functions on columns of a GPU against the same functions row by row: several rows a batch, some null,
 * some empty, at any alignment, whole columns and pieces of them; and what was taken from the device goes back to it.
 */
class RapidsDequantizeTest {
  private static final ListType BINARY = new ListType(true, new BasicType(false, DType.UINT8));

  private static boolean hasDevice;

  /** Before each, so that each is counted as skipped. */
  @BeforeEach
  void takeDevice() {
    try {
      Nvfp4Kernels.require(new KernelChoice(Device.RAPIDS, "auto"));
    } catch (IllegalArgumentException e) {
      Assumptions.abort("no GPU answers here: " + e.getMessage());
    }

    if (!hasDevice) {
      Rmm.initialize(RmmAllocationMode.CUDA_DEFAULT, null, 0);
      hasDevice = true;
    }
  }

  @AfterAll
  static void giveDeviceBack() {
    if (hasDevice) {
      Rmm.shutdown();
    }
  }

  @Test
  void nvfp4IsTheSameRowByRow() {
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      RapidsDequantize function = new RapidsDequantize(recipe);
      Batch batch = new Batch(97, Nvfp4Dequantize.BYTES_A_SCALE, 1);
      List<String> expected = new ArrayList<>();
      for (int row = 0; row < batch.rows; row++) {
        expected.add(text(function.call(batch.packed.get(row), batch.scales.get(row), batch.globalScales[row])));
      }

      assertSame(function, batch, true, expected);
    }
  }

  @Test
  void mxfp4IsTheSameRowByRow() {
    RapidsMxfp4Dequantize function = new RapidsMxfp4Dequantize();
    Batch batch = new Batch(97, Mxfp4Dequantize.BYTES_A_SCALE, 2);
    List<String> expected = new ArrayList<>();
    for (int row = 0; row < batch.rows; row++) {
      expected.add(text(function.call(batch.packed.get(row), batch.scales.get(row))));
    }

    assertSame(function, batch, false, expected);
  }

  @Test
  void batchesWithoutRowsAndOfNullsAlone() {
    assertSame(new RapidsMxfp4Dequantize(), new Batch(0, Mxfp4Dequantize.BYTES_A_SCALE, 3), false, List.of());
    Batch nulls = new Batch(9, Mxfp4Dequantize.BYTES_A_SCALE, 4);
    nulls.scales.replaceAll(scales -> null);
    assertSame(new RapidsMxfp4Dequantize(), nulls, false, Collections.nCopies(nulls.rows, "null"));
  }

  @Test
  void argumentsThatCannotBeAreRefusedAndNothingIsKept() {
    Batch batch = new Batch(20, Nvfp4Dequantize.BYTES_A_SCALE, 5);
    int row = batch.presentRow();
    batch.scales.set(row, new byte[batch.scales.get(row).length + 1]);
    assertRefused(batch, "Invalid scales: ");

    Batch unscaled = new Batch(20, Nvfp4Dequantize.BYTES_A_SCALE, 5);
    unscaled.globalScales[row] = -1f;
    assertRefused(unscaled, "Invalid global scale: -1.0, must be positive and finite");
  }

  private static void assertRefused(Batch batch, String message) {
    long before = Rmm.getTotalBytesAllocated();
    try (Table arguments = batch.table(true)) {
      assertThatThrownBy(() -> evaluate(new RapidsDequantize(Nvfp4Recipe.MODELOPT), arguments))
          .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith(message);
    }

    assertThat(Rmm.getTotalBytesAllocated()).isEqualTo(before);
  }

  /** The batch whole, then in pieces, copied one by one and split over one buffer. */
  private static void assertSame(RapidsUDF function, Batch batch, boolean hasGlobal, List<String> expected) {
    long before = Rmm.getTotalBytesAllocated();
    try (Table arguments = batch.table(hasGlobal)) {
      assertThat(evaluate(function, arguments)).isEqualTo(expected);
      if (batch.rows > 3) {
        int[] cuts = {1, batch.rows / 3, batch.rows - 2};
        List<String> pieces = new ArrayList<>();
        for (ContiguousTable piece : arguments.contiguousSplit(cuts)) {
          try (piece) {
            pieces.addAll(evaluate(function, piece.getTable()));
          }
        }

        assertThat(pieces).isEqualTo(expected);
        assertThat(evaluateSlices(function, arguments, cuts[1])).isEqualTo(expected.subList(cuts[1], batch.rows));
      }
    }

    assertThat(Rmm.getTotalBytesAllocated()).isEqualTo(before);
  }

  private static List<String> evaluateSlices(RapidsUDF function, Table arguments, int from) {
    ColumnVector[] slices = new ColumnVector[arguments.getNumberOfColumns()];
    for (int i = 0; i < slices.length; i++) {
      slices[i] = arguments.getColumn(i).subVector(from);
    }

    try (Table owner = new Table(slices)) {
      return evaluate(function, owner);
    } finally {
      for (ColumnVector slice : slices) {
        slice.close();
      }
    }
  }

  private static List<String> evaluate(RapidsUDF function, Table arguments) {
    ColumnVector[] columns = new ColumnVector[arguments.getNumberOfColumns()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = arguments.getColumn(i);
    }

    List<String> rows = new ArrayList<>();
    try (ColumnVector result = function.evaluateColumnar((int) arguments.getRowCount(), columns);
        HostColumnVector host = result.copyToHost()) {
      assertThat(result.getType()).isEqualTo(DType.LIST);
      for (int row = 0; row < host.getRowCount(); row++) {
        rows.add(text(host.isNull(row) ? null : host.getBytesFromList(row)));
      }

      assertThat(result.getNullCount()).isEqualTo(rows.stream().filter("null"::equals).count());
    }

    return rows;
  }

  /** For comparison: null, or the bytes. */
  private static String text(byte[] bytes) {
    return bytes == null ? "null" : HexFormat.of().formatHex(bytes);
  }

  /** Rows of any bits. Where one argument is null the others may be of any length, so that later rows lie at odd bytes. */
  private static final class Batch {
    private final int rows;
    private final List<byte[]> packed = new ArrayList<>();
    private final List<byte[]> scales = new ArrayList<>();
    private final Float[] globalScales;

    Batch(int rows, int bytesAScale, int seed) {
      Random random = new Random(seed);
      this.rows = rows;
      this.globalScales = new Float[rows];
      for (int row = 0; row < rows; row++) {
        int blocks = row % 11 == 3 ? 0 : random.nextInt(row % 13 == 5 ? 20_000 : 300);
        boolean isOdd = row % 7 == 2;
        packed.add(row % 17 == 4 ? null : bytes(random, blocks * bytesAScale + (isOdd ? 3 : 0)));
        scales.add(isOdd ? null : bytes(random, blocks));
        globalScales[row] = 0.001f + random.nextFloat();
      }
    }

    int presentRow() {
      int row = 0;
      while (packed.get(row) == null || scales.get(row) == null) {
        row++;
      }

      return row;
    }

    Table table(boolean hasGlobal) {
      try (ColumnVector codes = column(packed);
          ColumnVector blockScales = column(scales);
          ColumnVector global = ColumnVector.fromBoxedFloats(globalScales)) {
        return hasGlobal ? new Table(codes, blockScales, global) : new Table(codes, blockScales);
      }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static ColumnVector column(List<byte[]> values) {
      List[] lists = values.stream().map(Batch::boxed).toArray(List[]::new);
      return ColumnVector.fromLists(BINARY, lists);
    }

    private static List<Byte> boxed(byte[] bytes) {
      if (bytes == null) {
        return null;
      }

      List<Byte> boxed = new ArrayList<>(bytes.length);
      for (byte value : bytes) {
        boxed.add(value);
      }

      return boxed;
    }

    private static byte[] bytes(Random random, int count) {
      byte[] bytes = new byte[count];
      random.nextBytes(bytes);
      return bytes;
    }
  }
}
