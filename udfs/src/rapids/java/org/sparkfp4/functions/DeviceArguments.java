package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostColumnVector;
import ai.rapids.cudf.HostMemoryBuffer;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.kernels.Nvfp4Kernels;

/**
 * The arguments of one batch whose columns are on the device: binary values where they lie, scalars, which come as
 * columns too, from copies on the host.
 */
final class DeviceArguments implements UnitArguments, AutoCloseable {
  private static final int MEMBERS = 3;
  private static final int SCHEME = 2 * MEMBERS;

  private final DevicePayloads[] payloads;
  private final HostColumnVector[] scalars;
  private final List<AutoCloseable> opened = new ArrayList<>();

  /** @param arguments the members' payloads, then their scales, the scheme, and the function's own */
  DeviceArguments(ColumnVector[] arguments) {
    payloads = new DevicePayloads[arguments.length];
    scalars = new HostColumnVector[arguments.length];
    try {
      for (int i = 0; i < arguments.length; i++) {
        if (arguments[i].getType().equals(DType.LIST)) {
          payloads[i] = DevicePayloads.of(arguments[i]);
        } else {
          scalars[i] = closedAtEnd(arguments[i].copyToHost());
        }
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  /** What a kernel needs on the device for the segments of one row. */
  static DeviceMemoryBuffer scratch() {
    return DeviceMemoryBuffer.allocate(Nvfp4Kernels.deviceScratchBytes(MEMBERS));
  }

  /** The row's members at their addresses on the device. */
  @Override
  public Segments segments(int row) {
    if (payloads[0].isNull(row)) {
      return null;
    }

    HostColumnVector scheme = scalars[SCHEME];
    Segments segments = new Segments(scheme.isNull(row) ? null : scheme.getJavaString(row));
    for (int member = 0; member < MEMBERS; member++) {
      DevicePayloads data = payloads[member];
      if (!data.isNull(row)) {
        segments.add(member, data.address(row), data.bytes(row));
      }

      DevicePayloads scales = payloads[MEMBERS + member];
      if (!scales.isNull(row)) {
        segments.addScales(member, scales.address(row), scales.bytes(row));
      }
    }

    return segments;
  }

  @Override
  public Long longAt(int argument, int row) {
    HostColumnVector column = scalars[argument];
    return column.isNull(row) ? null : column.getLong(row);
  }

  @Override
  public Float floatAt(int argument, int row) {
    HostColumnVector column = scalars[argument];
    return column.isNull(row) ? null : column.getFloat(row);
  }

  /** Kernels read them on the device, but their values are checked here. */
  @Override
  public ImportanceBytes importanceAt(int argument, int row) {
    DevicePayloads column = payloads[argument];
    if (column.isNull(row)) {
      return null;
    }

    HostMemoryBuffer copy = closedAtEnd(column.copyToHost(row));
    return new ImportanceBytes(column.address(row), column.bytes(row), copy.getAddress());
  }

  private <T extends AutoCloseable> T closedAtEnd(T resource) {
    opened.add(resource);
    return resource;
  }

  @Override
  public void close() {
    for (AutoCloseable resource : opened) {
      try {
        resource.close();
      } catch (Exception e) {
        throw new IllegalStateException("Cannot give back the arguments of a batch", e);
      }
    }

    opened.clear();
  }
}
