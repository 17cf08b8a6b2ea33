package org.sparkfp4.jobs;

import java.util.List;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import picocli.CommandLine.Option;

/** The option that says what computes; it changes no byte. */
final class DeviceOption {
  private static final String NAME = "--device";

  @Option(names = NAME, paramLabel = "NAME",
      description = "What computes: auto (default; a GPU where tasks find one and it pays), cpu, cuda (a GPU, or an error) "
          + "or, for quantizing weights alone, rapids (a GPU, on the columns of the RAPIDS Accelerator, or an error). "
          + "The bytes are the same.")
  private String device;

  /**
   * The choice of kernels, with the device that was given if one was.
   *
   * @throws IllegalArgumentException if it is none
   */
  KernelChoice over(KernelChoice settings) {
    return device == null ? settings : new KernelChoice(Device.named(device), settings.tier());
  }

  /**
   * The same for a command that works on host memory: a device of the session's that is for columns of a GPU leaves it to
   * the CPU.
   *
   * @throws IllegalArgumentException if the device that was given is none, or is for columns of a GPU
   */
  KernelChoice onHost(KernelChoice settings) {
    KernelChoice kernels = over(settings.onHost());
    if (kernels.device() == Device.RAPIDS) {
      throw new IllegalArgumentException("Invalid " + NAME
          + ": rapids (the RAPIDS Accelerator has no part in this command; it must be auto, cpu or cuda)");
    }

    return kernels;
  }

  /** As it was given, for another command. */
  List<String> arguments() {
    return device == null ? List.of() : List.of(NAME, device);
  }
}
