package org.sparkfp4.functions;

import java.io.Serializable;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;

/** The kernel of a tier, chosen where it runs: the driver, which may have another CPU, sends only the name. */
final class LazyKernel implements Serializable {
  private final String tier;
  private transient volatile Nvfp4Kernel kernel;

  LazyKernel(String tier) {
    this.tier = tier;
  }

  Nvfp4Kernel kernel() {
    Nvfp4Kernel chosen = kernel;
    if (chosen == null) {
      // Two threads may both come here; they find the same kernel.
      chosen = Nvfp4Kernels.forTier(tier);
      kernel = chosen;
    }

    return chosen;
  }
}
