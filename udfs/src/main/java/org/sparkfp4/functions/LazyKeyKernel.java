package org.sparkfp4.functions;

import java.io.Serializable;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.KeyKernel;
import org.sparkfp4.kernels.KeyKernels;

/** {@link LazyKernel} of the MXFP4 kernels. */
final class LazyKeyKernel implements Serializable {
  private final KernelChoice choice;
  private transient volatile KeyKernel kernel;

  LazyKeyKernel(KernelChoice choice) {
    this.choice = choice;
  }

  KeyKernel kernel() {
    KeyKernel chosen = kernel;
    if (chosen == null) {
      // Two threads may both come here; they find the same kernel.
      chosen = KeyKernels.chosen(choice);
      kernel = chosen;
    }

    return chosen;
  }
}
