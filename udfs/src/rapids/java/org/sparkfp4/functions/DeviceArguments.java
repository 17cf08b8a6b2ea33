package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DeviceMemoryBuffer;
import org.sparkfp4.kernels.Nvfp4Kernels;

/** The arguments of one batch of a unit's function, whose columns are on the device. */
final class DeviceArguments implements UnitArguments, AutoCloseable {
  private static final int MEMBERS = 3;
  private static final int SCHEME = 2 * MEMBERS;

  private final DeviceColumns columns;

  /** @param arguments the members' payloads, then their scales, the scheme, and the function's own */
  DeviceArguments(ColumnVector[] arguments) {
    columns = new DeviceColumns(arguments);
  }

  /** What a kernel needs on the device for the segments of one row. */
  static DeviceMemoryBuffer scratch() {
    return DeviceMemoryBuffer.allocate(Nvfp4Kernels.deviceScratchBytes(MEMBERS));
  }

  /** The row's members at their addresses on the device. */
  @Override
  public Segments segments(int row) {
    if (columns.isNull(0, row)) {
      return null;
    }

    Segments segments = new Segments(columns.textAt(SCHEME, row));
    for (int member = 0; member < MEMBERS; member++) {
      DevicePayloads data = columns.payloads(member);
      if (!data.isNull(row)) {
        segments.add(member, data.address(row), data.bytes(row));
      }

      DevicePayloads scales = columns.payloads(MEMBERS + member);
      if (!scales.isNull(row)) {
        segments.addScales(member, scales.address(row), scales.bytes(row));
      }
    }

    return segments;
  }

  @Override
  public Long longAt(int argument, int row) {
    return columns.longAt(argument, row);
  }

  @Override
  public Float floatAt(int argument, int row) {
    return columns.floatAt(argument, row);
  }

  /** Kernels read them on the device, but their values are checked here. */
  @Override
  public ImportanceBytes importanceAt(int argument, int row) {
    if (columns.isNull(argument, row)) {
      return null;
    }

    DevicePayloads importance = columns.payloads(argument);
    return new ImportanceBytes(
        importance.address(row), importance.bytes(row), columns.copiedToHost(argument, row));
  }

  @Override
  public void close() {
    columns.close();
  }
}
