package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import com.nvidia.spark.RapidsUDF;
import org.sparkfp4.kernels.DeviceValues;

/** {@link Mxfp4Dequantize} with a second face: on the RAPIDS Accelerator's columns. */
public final class RapidsMxfp4Dequantize extends Mxfp4Dequantize implements RapidsUDF {
  @Override
  public ColumnVector evaluateColumnar(int rows, ColumnVector... arguments) {
    try (DeviceColumns columns = new DeviceColumns(arguments)) {
      return DequantizedColumn.of(rows, columns, new Rows(columns.payloads(0), columns.payloads(1)));
    }
  }

  private record Rows(DevicePayloads packed, DevicePayloads scales) implements DequantizedColumn.Format {
    @Override
    public int payloadBytes(int row) {
      return Mxfp4Dequantize.payloadBytes(packed.bytes(row), scales.bytes(row));
    }

    @Override
    public void enqueue(DeviceValues kernel, int row, long out) {
      kernel.mxfp4(packed.address(row), scales.address(row), scales.bytes(row), out);
    }
  }
}
