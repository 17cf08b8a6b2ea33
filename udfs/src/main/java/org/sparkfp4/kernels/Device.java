package org.sparkfp4.kernels;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What computes: {@code spark.fp4.device}. All devices give the same bytes. */
public enum Device {
  /** RAPIDS inside a plan of the RAPIDS Accelerator, else CUDA where a device answers, else the CPU. */
  AUTO,
  /** The processor, on the tier that {@code spark.fp4.cpu.tier} names. */
  CPU,
  /** A GPU that host memory is copied to and from. Where there is none, an error. */
  CUDA,
  /** A GPU, on the columns that the RAPIDS Accelerator holds there. Outside of its plans, an error. */
  RAPIDS;

  /**
   * The device of that name.
   *
   * @throws IllegalArgumentException if there is none, naming those that are
   */
  public static Device named(String name) {
    return Arrays.stream(values()).filter(device -> device.optionName().equals(name)).findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid device: " + name + ", must be one of "
            + Arrays.stream(values()).map(Device::optionName).collect(Collectors.joining(", "))
            + " (--device or " + KernelChoice.DEVICE_KEY + ")"));
  }

  /** As options and settings write it. */
  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }
}
