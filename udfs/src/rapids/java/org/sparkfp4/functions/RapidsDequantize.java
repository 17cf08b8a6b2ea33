package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import com.nvidia.spark.RapidsUDF;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.kernels.DeviceValues;

/** {@link Nvfp4Dequantize} with a third face: on the RAPIDS Accelerator's columns. */
public final class RapidsDequantize extends Nvfp4Dequantize implements RapidsUDF {
  private static final int GLOBAL_SCALE = 2;

  RapidsDequantize(Nvfp4Recipe recipe) {
    super(recipe);
  }

  @Override
  public ColumnVector evaluateColumnar(int rows, ColumnVector... arguments) {
    try (DeviceColumns columns = new DeviceColumns(arguments)) {
      return DequantizedColumn.of(rows, columns, new Rows(columns));
    }
  }

  private final class Rows implements DequantizedColumn.Format {
    private final DeviceColumns columns;
    private final DevicePayloads packed;
    private final DevicePayloads scales;

    Rows(DeviceColumns columns) {
      this.columns = columns;
      this.packed = columns.payloads(0);
      this.scales = columns.payloads(1);
    }

    @Override
    public int payloadBytes(int row) {
      return Nvfp4Dequantize.payloadBytes(packed.bytes(row), scales.bytes(row), columns.floatAt(GLOBAL_SCALE, row));
    }

    @Override
    public void enqueue(DeviceValues kernel, int row, long out) {
      kernel.nvfp4(recipe(), packed.address(row), scales.address(row), scales.bytes(row),
          columns.floatAt(GLOBAL_SCALE, row), out);
    }
  }
}
