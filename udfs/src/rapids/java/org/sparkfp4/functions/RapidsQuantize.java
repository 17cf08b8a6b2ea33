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
    ListOffsets packedOffsets = new ListOffsets("codes", units.length);
    ListOffsets scalesOffsets = new ListOffsets("block scales", units.length);
    for (WeightUnit unit : units) {
      if (unit == null) {
        packedOffsets.addNull();
        scalesOffsets.addNull();
      } else {
        packedOffsets.add(unit.packedBytes());
        scalesOffsets.add(unit.scalesBytes());
      }
    }

    try (ColumnBuilder result = new ColumnBuilder(packedOffsets.present())) {
      DeviceMemoryBuffer packed = result.allocate(packedOffsets.bytes());
      DeviceMemoryBuffer scales = result.allocate(scalesOffsets.bytes());
      EncodedRows encoded = new EncodedRows(units.length);
      for (int row = 0; row < units.length; row++) {
        encoded.add(units[row] == null ? null : units[row].encode(kernel, recipe(), search(),
            packed.getAddress() + packedOffsets.start(row), scales.getAddress() + scalesOffsets.start(row)));
      }

      result.addBinary(packedOffsets.offsets(), packed);
      result.addBinary(scalesOffsets.offsets(), scales);
      encoded.addTo(result);
      return result.buildStruct();
    }
  }
}
