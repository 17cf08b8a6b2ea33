package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DeviceMemoryBuffer;
import org.sparkfp4.kernels.DeviceValues;
import org.sparkfp4.kernels.Nvfp4Kernels;

/**
 * The payloads of a batch whose codes and scales are on the device. All rows are checked before memory is taken or a
 * kernel starts; a row that is null in any argument is null.
 */
final class DequantizedColumn {
  private DequantizedColumn() {}

  /** The column, which belongs to the caller. */
  static ColumnVector of(int rows, DeviceColumns arguments, Format format) {
    ListOffsets offsets = new ListOffsets("values", rows);
    for (int row = 0; row < rows; row++) {
      if (arguments.hasNull(row)) {
        offsets.addNull();
      } else {
        offsets.add(format.payloadBytes(row));
      }
    }

    DeviceValues kernel = Nvfp4Kernels.valuesOnDeviceMemory();
    try (ColumnBuilder result = new ColumnBuilder(offsets.present())) {
      DeviceMemoryBuffer values = result.allocate(offsets.bytes());
      for (int row = 0; row < rows; row++) {
        if (offsets.present()[row]) {
          format.enqueue(kernel, row, values.getAddress() + offsets.start(row));
        }
      }

      // Once a batch: an error of the device is then this function's, and told as such.
      kernel.finish();
      return result.buildBinary(offsets.offsets(), values);
    }
  }

  /** What rows without a null hold. */
  interface Format {
    /**
     * Bytes of a row's values.
     *
     * @throws IllegalArgumentException if an argument of the row cannot be
     */
    int payloadBytes(int row);

    /** Enqueues what writes a row's values to an address on the device. */
    void enqueue(DeviceValues kernel, int row, long out);
  }
}
