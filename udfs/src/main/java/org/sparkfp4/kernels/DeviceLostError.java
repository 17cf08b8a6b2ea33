package org.sparkfp4.kernels;

/**
 * The GPU's state is lost to this process: every later call of CUDA would fail. As a {@link VirtualMachineError} it ends
 * the executor, which Spark replaces.
 */
final class DeviceLostError extends VirtualMachineError {
  DeviceLostError(String message) {
    super(message);
  }
}
