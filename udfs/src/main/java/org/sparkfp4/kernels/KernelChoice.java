package org.sparkfp4.kernels;

import java.io.Serializable;
import java.util.Objects;
import java.util.function.UnaryOperator;

/**
 * Which kernels a query asks for. Made on the driver, settled where tasks run ({@link Nvfp4Kernels#chosen}): executors do
 * not see the session's settings, and the driver not their processors and GPUs.
 *
 * @param tier of the CPU kernels, as {@link Nvfp4Kernels#forTier} takes it
 */
public record KernelChoice(Device device, String tier) implements Serializable {
  /** Setting: the device. */
  public static final String DEVICE_KEY = "spark.fp4.device";
  /** Setting: the tier of the CPU kernels. */
  public static final String TIER_KEY = "spark.fp4.cpu.tier";

  private static final String AUTO = "auto";

  public KernelChoice {
    Objects.requireNonNull(device, "device");
    Objects.requireNonNull(tier, "tier");
  }

  /**
   * What settings ask for.
   *
   * @param setting gives the value of a key, or null
   * @throws IllegalArgumentException if the device is none
   */
  public static KernelChoice of(UnaryOperator<String> setting) {
    String device = setting.apply(DEVICE_KEY);
    String tier = setting.apply(TIER_KEY);
    return new KernelChoice(device == null ? Device.AUTO : Device.named(device), tier == null ? AUTO : tier);
  }

  /** A tier of the processor's. */
  public static KernelChoice cpu(String tier) {
    return new KernelChoice(Device.CPU, tier);
  }

  /** Whether anything serves: such a choice cannot be refused. */
  public boolean isAutomatic() {
    return tier.equalsIgnoreCase(AUTO) && (device == Device.AUTO || device == Device.CPU);
  }

  /** For host memory, in a plan of the RAPIDS Accelerator: its GPU works on its own columns, the processor on the rest. */
  public KernelChoice onHost() {
    return device == Device.RAPIDS ? cpu(tier) : this;
  }
}
