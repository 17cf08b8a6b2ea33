package org.sparkfp4.functions;

import java.io.Serializable;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;

/** The kernel of a choice, settled where it runs: the driver, which may have another CPU, sends only the names. */
final class LazyKernel implements Serializable {
  private final KernelChoice choice;
  private transient volatile Nvfp4Kernel kernel;

  LazyKernel(KernelChoice choice) {
    this.choice = choice;
  }

  Nvfp4Kernel kernel() {
    Nvfp4Kernel chosen = kernel;
    if (chosen == null) {
      // Two threads may both come here; they find the same kernel.
      chosen = Nvfp4Kernels.chosen(choice);
      kernel = chosen;
    }

    return chosen;
  }
}
