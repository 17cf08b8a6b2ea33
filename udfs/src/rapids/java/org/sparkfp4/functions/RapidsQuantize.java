package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DeviceMemoryBuffer;
import com.nvidia.spark.RapidsUDF;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;

/**
 * {@link Nvfp4Quantize} with a third face: on the RAPIDS Accelerator's columns. Kernels read the payloads and write codes
 * and scales where they lie on the device; only what is small comes to the host.
 */
public final class RapidsQuantize extends Nvfp4Quantize implements RapidsUDF {
  RapidsQuantize(Nvfp4Recipe recipe, ScaleSearch search, KernelChoice kernels) {
    super(recipe, search, kernels);
  }

  @Override
  public ColumnVector evaluateColumnar(int rows, ColumnVector... arguments) {
    try (DeviceArguments reader = new DeviceArguments(arguments);
        DeviceMemoryBuffer scratch = DeviceArguments.scratch()) {
      WeightUnit[] units = QuantizeEvaluator.units(rows, reader, WeightUnit::new);
      return encoded(units, Nvfp4Kernels.onDeviceMemory(scratch.getAddress()));
    }
  }

  private ColumnVector encoded(WeightUnit[] units, Nvfp4Kernel kernel) {
    boolean[] present = new boolean[units.length];
    int[] packedOffsets = new int[units.length + 1];
    int[] scalesOffsets = new int[units.length + 1];
    for (int row = 0; row < units.length; row++) {
      WeightUnit unit = units[row];
      present[row] = unit != null;
      packedOffsets[row + 1] = end(packedOffsets[row], unit == null ? 0 : unit.packedBytes(), units.length);
      scalesOffsets[row + 1] = end(scalesOffsets[row], unit == null ? 0 : unit.scalesBytes(), units.length);
    }

    try (StructBuilder result = new StructBuilder(present)) {
      DeviceMemoryBuffer packed = result.allocate(packedOffsets[units.length]);
      DeviceMemoryBuffer scales = result.allocate(scalesOffsets[units.length]);
      EncodedRows encoded = new EncodedRows(units.length);
      for (int row = 0; row < units.length; row++) {
        encoded.add(units[row] == null ? null : units[row].encode(
            kernel, recipe(), search(), packed.getAddress() + packedOffsets[row], scales.getAddress() + scalesOffsets[row]));
      }

      result.addBinary(packedOffsets, packed);
      result.addBinary(scalesOffsets, scales);
      encoded.addTo(result);
      return result.build();
    }
  }

  private static int end(int start, long bytes, int rows) {
    if (start + bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("Cannot write the codes of one batch of " + rows + " rows: they pass "
          + Integer.MAX_VALUE + " bytes, lower spark.rapids.sql.batchSizeBytes");
    }

    return (int) (start + bytes);
  }
}
