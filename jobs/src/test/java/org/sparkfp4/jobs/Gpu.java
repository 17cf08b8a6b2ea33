package org.sparkfp4.jobs;

import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernels;

/** The GPU of the machine that runs the tests. */
final class Gpu {
  private Gpu() {}

  /** Whether there is one, and the library with its kernels. */
  static boolean answers() {
    try {
      Nvfp4Kernels.require(new KernelChoice(Device.CUDA, "auto"));
      return true;
    } catch (IllegalArgumentException e) {
      return false;
    }
  }
}
