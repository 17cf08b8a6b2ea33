package org.sparkfp4.functions;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.HostMemoryBuffer;

/**
 * Where the binary values of a LIST of UINT8 lie on the device. Offsets and validity are read once, 33 bits a row; the
 * values stay where they are. Valid as long as the column is.
 */
final class DevicePayloads {
  private final BaseDeviceMemoryBuffer data;
  private final int[] offsets;
  private final byte[] validity;

  private DevicePayloads(BaseDeviceMemoryBuffer data, int[] offsets, byte[] validity) {
    this.data = data;
    this.offsets = offsets;
    this.validity = validity;
  }

  /** Waits for this thread's stream, as every copy to the host does. */
  static DevicePayloads of(ColumnVector column) {
    int rows = Math.toIntExact(column.getRowCount());
    int[] offsets = new int[rows + 1];
    BaseDeviceMemoryBuffer deviceOffsets = column.getOffsets();
    if (rows > 0 && deviceOffsets != null) {
      if (deviceOffsets.getLength() != (long) offsets.length * Integer.BYTES) {
        throw new IllegalStateException("Cannot read a binary column of " + rows + " rows: it has "
            + deviceOffsets.getLength() + " bytes of offsets, so it is a view of another column");
      }

      try (HostMemoryBuffer host = HostMemoryBuffer.allocate(deviceOffsets.getLength())) {
        host.copyFromDeviceBuffer(deviceOffsets);
        host.getInts(offsets, 0, 0, offsets.length);
      }
    }

    try (ColumnView values = column.getChildColumnView(0)) {
      return new DevicePayloads(values.getData(), offsets, validity(column));
    }
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
    return validity != null && (validity[row / 8] >> row % 8 & 1) == 0;
  }

  /** The value's address on the device. */
  long address(int row) {
    return data == null ? 0 : data.getAddress() + offsets[row];
  }

  long bytes(int row) {
    return offsets[row + 1] - offsets[row];
  }

  /** A copy of the value, which belongs to the caller. */
  HostMemoryBuffer copyToHost(int row) {
    HostMemoryBuffer copy = HostMemoryBuffer.allocate(Math.max(1, bytes(row)));
    try {
      if (bytes(row) > 0) {
        copy.copyFromMemoryBuffer(0, data, offsets[row], bytes(row), Cuda.DEFAULT_STREAM);
      }

      return copy;
    } catch (RuntimeException | Error e) {
      copy.close();
      throw e;
    }
  }
}
