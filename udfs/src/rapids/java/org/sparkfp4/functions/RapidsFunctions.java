package org.sparkfp4.functions;

import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;

/** The functions with their face for the RAPIDS Accelerator. */
public final class RapidsFunctions implements FunctionProvider {
  @Override
  public Nvfp4Quantize quantize(Nvfp4Recipe recipe, ScaleSearch search, KernelChoice kernels) {
    return new RapidsQuantize(recipe, search, kernels);
  }

  @Override
  public Nvfp4Amax amax(KernelChoice kernels) {
    return new RapidsAmax(kernels);
  }

  @Override
  public Nvfp4Dequantize dequantize(Nvfp4Recipe recipe) {
    return new RapidsDequantize(recipe);
  }

  @Override
  public Mxfp4Dequantize mxfp4Dequantize() {
    return new RapidsMxfp4Dequantize();
  }
}
