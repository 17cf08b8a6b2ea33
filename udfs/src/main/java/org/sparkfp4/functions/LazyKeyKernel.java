package org.sparkfp4.functions;

import java.io.Serializable;
import org.sparkfp4.kernels.KeyKernel;
import org.sparkfp4.kernels.KeyKernels;

/** {@link LazyKernel} of the MXFP4 kernels. */
final class LazyKeyKernel implements Serializable {
  private final String tier;
  private transient volatile KeyKernel kernel;

  LazyKeyKernel(String tier) {
    this.tier = tier;
  }

  KeyKernel kernel() {
    KeyKernel chosen = kernel;
    if (chosen == null) {
      // Two threads may both come here; they find the same kernel.
      chosen = KeyKernels.forTier(tier);
      kernel = chosen;
    }

    return chosen;
  }
}
