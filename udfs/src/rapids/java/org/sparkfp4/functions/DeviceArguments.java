package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostColumnVector;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.kernels.Nvfp4Kernels;

/**
 * The arguments of one batch whose columns are on the device: payloads as segments where they lie, scalars, which come
 * as columns too, from copies on the host.
 */
final class DeviceArguments implements UnitArguments, AutoCloseable {
  private static final int MEMBERS = 3;
  private static final int SCHEME = 2 * MEMBERS;

  private final DevicePayloads[] payloads = new DevicePayloads[SCHEME];
  private final List<HostColumnVector> scalars = new ArrayList<>();

  /** @param arguments the members' payloads, then their scales, the scheme, and the function's own */
  DeviceArguments(ColumnVector[] arguments) {
    try {
      for (int i = 0; i < arguments.length; i++) {
        if (i < SCHEME) {
          payloads[i] = DevicePayloads.of(arguments[i]);
        } else {
          scalars.add(arguments[i].copyToHost());
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

    HostColumnVector scheme = scalars.get(0);
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
    HostColumnVector column = scalars.get(argument - SCHEME);
    return column.isNull(row) ? null : column.getLong(row);
  }

  @Override
  public Float floatAt(int argument, int row) {
    HostColumnVector column = scalars.get(argument - SCHEME);
    return column.isNull(row) ? null : column.getFloat(row);
  }

  @Override
  public void close() {
    scalars.forEach(HostColumnVector::close);
    scalars.clear();
  }
}
