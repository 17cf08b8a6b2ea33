package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.HostColumnVector;
import ai.rapids.cudf.HostMemoryBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The columns of one batch that a function is given on the device: binary values where they lie, scalars, which come as
 * columns too, from copies on the host. The columns stay their owner's.
 */
final class DeviceColumns implements AutoCloseable {
  private final DevicePayloads[] payloads;
  private final HostColumnVector[] scalars;
  private final List<AutoCloseable> opened = new ArrayList<>();

  DeviceColumns(ColumnVector... columns) {
    payloads = new DevicePayloads[columns.length];
    scalars = new HostColumnVector[columns.length];
    try {
      for (int i = 0; i < columns.length; i++) {
        if (columns[i].getType().equals(DType.LIST)) {
          payloads[i] = DevicePayloads.of(columns[i]);
        } else {
          scalars[i] = closedAtEnd(columns[i].copyToHost());
        }
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
  }

  /** A column of binary values. */
  DevicePayloads payloads(int column) {
    return payloads[column];
  }

  boolean isNull(int column, int row) {
    return payloads[column] == null ? scalars[column].isNull(row) : payloads[column].isNull(row);
  }

  /** Whether the row is null in any column. */
  boolean hasNull(int row) {
    for (int column = 0; column < payloads.length; column++) {
      if (isNull(column, row)) {
        return true;
      }
    }

    return false;
  }

  String textAt(int column, int row) {
    return isNull(column, row) ? null : scalars[column].getJavaString(row);
  }

  Long longAt(int column, int row) {
    return isNull(column, row) ? null : scalars[column].getLong(row);
  }

  Float floatAt(int column, int row) {
    return isNull(column, row) ? null : scalars[column].getFloat(row);
  }

  /** The address of a copy of a binary value in host memory, which stays until these columns are closed. */
  long copiedToHost(int column, int row) {
    HostMemoryBuffer copy = closedAtEnd(payloads[column].copyToHost(row));
    return copy.getAddress();
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
