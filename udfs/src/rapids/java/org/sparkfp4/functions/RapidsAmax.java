package org.sparkfp4.functions;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DeviceMemoryBuffer;
import com.nvidia.spark.RapidsUDF;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;

/** {@link Nvfp4Amax} with a third face: on the RAPIDS Accelerator's columns. */
public final class RapidsAmax extends Nvfp4Amax implements RapidsUDF {
  private static final int COLS = 7;

  RapidsAmax(KernelChoice kernels) {
    super(kernels);
  }

  @Override
  public ColumnVector evaluateColumnar(int rows, ColumnVector... arguments) {
    Float[] amax = new Float[rows];
    try (DeviceArguments reader = new DeviceArguments(arguments);
        DeviceMemoryBuffer scratch = DeviceArguments.scratch()) {
      Nvfp4Kernel kernel = Nvfp4Kernels.onDeviceMemory(scratch.getAddress());
      for (int row = 0; row < rows; row++) {
        Segments segments = reader.segments(row);
        if (segments != null) {
          amax[row] = amax(kernel, segments, reader.longAt(COLS, row));
        }
      }
    }

    return ColumnVector.fromBoxedFloats(amax);
  }
}
