package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Makes a result's column out of buffers on the device, without copying any of them: a STRUCT of the fields that were
 * added, or one of binary values. The buffers belong to the builder until the column is made, which then owns them. Rows
 * without a value are null in a struct and in each of its fields, and empty in lists.
 */
final class ColumnBuilder implements AutoCloseable {
  /** What cuDF pads validity to. */
  private static final int VALIDITY_BYTES = 64;

  private final int rows;
  private final long nulls;
  private final DeviceMemoryBuffer validity;
  private final List<DeviceMemoryBuffer> buffers = new ArrayList<>();
  private final List<ColumnView> elements = new ArrayList<>();
  private final List<ColumnView> fields = new ArrayList<>();
  private boolean isBuilt;

  /** @param present whether a row has a value */
  ColumnBuilder(boolean[] present) {
    this.rows = present.length;
    byte[] bits = new byte[Math.max(1, (rows + VALIDITY_BYTES * 8 - 1) / (VALIDITY_BYTES * 8)) * VALIDITY_BYTES];
    int valid = 0;
    for (int row = 0; row < rows; row++) {
      if (present[row]) {
        bits[row / 8] |= (byte) (1 << row % 8);
        valid++;
      }
    }

    this.nulls = rows - valid;
    this.validity = nulls == 0 ? null : copied(bits.length, host -> host.setBytes(0, bits, 0, bits.length));
  }

  /** Device memory for values; what it holds is undefined. */
  DeviceMemoryBuffer allocate(long bytes) {
    DeviceMemoryBuffer buffer = DeviceMemoryBuffer.allocate(Math.max(1, bytes));
    buffers.add(buffer);
    return buffer;
  }

  /** Adds a FLOAT32 field. */
  void addFloats(float[] values) {
    DeviceMemoryBuffer data = copied((long) values.length * Float.BYTES,
        host -> host.setFloats(0, values, 0, values.length));
    buffers.add(data);
    fields.add(new ColumnView(DType.FLOAT32, rows, Optional.of(nulls), data, validity));
  }

  /** Adds a field of lists of FLOAT64. */
  void addDoubleLists(int[] offsets, double[] values) {
    DeviceMemoryBuffer data = copied((long) values.length * Double.BYTES,
        host -> host.setDoubles(0, values, 0, values.length));
    buffers.add(data);
    addLists(DType.FLOAT64, offsets, data);
  }

  /** Adds a field of lists of INT64. */
  void addLongLists(int[] offsets, long[] values) {
    DeviceMemoryBuffer data = copied((long) values.length * Long.BYTES,
        host -> host.setLongs(0, values, 0, values.length));
    buffers.add(data);
    addLists(DType.INT64, offsets, data);
  }

  /**
   * Adds a field of binary values, which cuDF has as lists of UINT8.
   *
   * @param data of {@link #allocate}
   */
  void addBinary(int[] offsets, DeviceMemoryBuffer data) {
    addLists(DType.UINT8, offsets, data);
  }

  private void addLists(DType type, int[] offsets, DeviceMemoryBuffer data) {
    DeviceMemoryBuffer deviceOffsets = deviceOffsets(offsets);
    fields.add(new ColumnView(DType.LIST, rows, Optional.of(nulls), validity, deviceOffsets,
        new ColumnView[] {elements(type, offsets, data)}));
  }

  private DeviceMemoryBuffer deviceOffsets(int[] offsets) {
    DeviceMemoryBuffer deviceOffsets = copied((long) offsets.length * Integer.BYTES,
        host -> host.setInts(0, offsets, 0, offsets.length));
    buffers.add(deviceOffsets);
    return deviceOffsets;
  }

  private ColumnView elements(DType type, int[] offsets, DeviceMemoryBuffer data) {
    ColumnView values = new ColumnView(type, offsets[rows], Optional.of(0L), data, null);
    elements.add(values);
    return values;
  }

  /** The column of structs, which owns all buffers; the builder is done with. */
  ColumnVector buildStruct() {
    long[] handles = fields.stream().mapToLong(ColumnView::getNativeView).toArray();
    ColumnVector column = new ColumnVector(
        DType.STRUCT, rows, Optional.of(nulls), null, validity, null, List.copyOf(buffers), handles);
    isBuilt = true;
    return column;
  }

  /**
   * The column of binary values, which owns all buffers; the builder is done with.
   *
   * @param data of {@link #allocate}
   */
  ColumnVector buildBinary(int[] offsets, DeviceMemoryBuffer data) {
    DeviceMemoryBuffer deviceOffsets = deviceOffsets(offsets);
    long[] values = {elements(DType.UINT8, offsets, data).getNativeView()};
    // A column closes its own offsets, as it does its validity.
    List<DeviceMemoryBuffer> others = buffers.stream().filter(buffer -> buffer != deviceOffsets).toList();
    ColumnVector column = new ColumnVector(
        DType.LIST, rows, Optional.of(nulls), null, validity, deviceOffsets, others, values);
    isBuilt = true;
    return column;
  }

  /** Closes the views, which own nothing, and the buffers unless a column has them. */
  @Override
  public void close() {
    fields.forEach(ColumnView::close);
    elements.forEach(ColumnView::close);
    if (!isBuilt) {
      buffers.forEach(DeviceMemoryBuffer::close);
      if (validity != null) {
        validity.close();
      }
    }
  }

  private static DeviceMemoryBuffer copied(long bytes, Consumer<HostMemoryBuffer> filler) {
    long size = Math.max(1, bytes);
    DeviceMemoryBuffer device = DeviceMemoryBuffer.allocate(size);
    try (HostMemoryBuffer host = HostMemoryBuffer.allocate(size)) {
      filler.accept(host);
      device.copyFromHostBuffer(host);
      return device;
    } catch (RuntimeException | Error e) {
      device.close();
      throw e;
    }
  }
}
