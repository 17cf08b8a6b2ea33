package org.sparkfp4.jobs;

import java.util.List;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import picocli.CommandLine.Option;

/** The option that says what computes; it changes no byte. */
final class DeviceOption {
  private static final String NAME = "--device";

  @Option(names = NAME, paramLabel = "NAME",
      description = "What computes: auto (default; a GPU where the tasks find one), cpu, cuda (a GPU, or an error) "
          + "or, for weights alone, rapids (a GPU, on the columns of the RAPIDS Accelerator, or an error). "
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

  /** As it was given, for another command. */
  List<String> arguments() {
    return device == null ? List.of() : List.of(NAME, device);
  }
}
