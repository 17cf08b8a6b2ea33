package org.sparkfp4.functions;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.HostMemoryBuffer;

/**
 * The binary values of a LIST of UINT8 on the device. Offsets and validity are read once, 33 bits a row; the values stay
 * where they are. Valid as long as the column is.
 */
final class DevicePayloads {
  private final BaseDeviceMemoryBuffer data;
  private final BinaryPlaces places;

  private DevicePayloads(BaseDeviceMemoryBuffer data, BinaryPlaces places) {
    this.data = data;
    this.places = places;
  }

  /** Waits for this thread's stream, as every copy to the host does. */
  static DevicePayloads of(ColumnVector column) {
    int[] offsets = offsets(column);
    byte[] validity = validity(column);
    try (ColumnView values = column.getChildColumnView(0)) {
      BaseDeviceMemoryBuffer data = values.getData();
      return new DevicePayloads(data, new BinaryPlaces(offsets, validity, data == null ? 0 : data.getLength()));
    }
  }

  private static int[] offsets(ColumnVector column) {
    int rows = Math.toIntExact(column.getRowCount());
    int[] offsets = new int[rows + 1];
    BaseDeviceMemoryBuffer deviceOffsets = column.getOffsets();
    if (rows > 0 && deviceOffsets != null) {
      BinaryPlaces.requireOwnOffsets(rows, deviceOffsets.getLength());
      try (HostMemoryBuffer host = HostMemoryBuffer.allocate(deviceOffsets.getLength())) {
        host.copyFromDeviceBuffer(deviceOffsets);
        host.getInts(offsets, 0, 0, offsets.length);
      }
    }

    return offsets;
  }

  private static byte[] validity(ColumnVector column) {
    BaseDeviceMemoryBuffer bits = column.getValid();
    if (bits == null) {
      return null;
    }

    try (HostMemoryBuffer host = HostMemoryBuffer.allocate(bits.getLength())) {
      host.copyFromDeviceBuffer(bits);
      byte[] copy = new byte[Math.toIntExact(bits.getLength())];
      host.getBytes(copy, 0, 0, copy.length);
      return copy;
    }
  }

  boolean isNull(int row) {
    return places.isNull(row);
  }

  /** The value's address on the device. */
  long address(int row) {
    return data == null ? 0 : data.getAddress() + places.start(row);
  }

  long bytes(int row) {
    return places.bytes(row);
  }

  /** A copy of the value, which belongs to the caller. */
  HostMemoryBuffer copyToHost(int row) {
    HostMemoryBuffer copy = HostMemoryBuffer.allocate(Math.max(1, bytes(row)));
    try {
      if (bytes(row) > 0) {
        copy.copyFromMemoryBuffer(0, data, places.start(row), bytes(row), Cuda.DEFAULT_STREAM);
      }

      return copy;
    } catch (RuntimeException | Error e) {
      copy.close();
      throw e;
    }
  }
}
