package org.sparkfp4.functions;

import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;

/** Makes functions that have one more face than the plain ones. */
interface FunctionProvider {
  Nvfp4Quantize quantize(Nvfp4Recipe recipe, ScaleSearch search, KernelChoice kernels);

  Nvfp4Amax amax(KernelChoice kernels);

  Nvfp4Dequantize dequantize(Nvfp4Recipe recipe);

  Mxfp4Dequantize mxfp4Dequantize();
}
