package org.sparkfp4.kernels;

import java.util.Arrays;
import java.util.List;

/** The MXFP4 kernels of the tiers that {@link Nvfp4Kernels} has. */
public final class KeyKernels {
  private KeyKernels() {}

  /**
   * The kernel of a tier, named and chosen as {@link Nvfp4Kernels#forTier} does.
   *
   * @throws IllegalArgumentException if the tier is not to be had here, naming those that are
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static KeyKernel forTier(String tier) {
    return of(Nvfp4Kernels.forTier(tier));
  }

  /** The kernels that this processor and class path have, slowest first. */
  public static List<KeyKernel> available() {
    return Nvfp4Kernels.available().stream().map(KeyKernels::of).toList();
  }

  private static KeyKernel of(Nvfp4Kernel chosen) {
    return Arrays.stream(NativeKernel.Tier.values())
        .filter(tier -> tier.title().equals(chosen.tier()))
        .findFirst()
        .<KeyKernel>map(NativeKeyKernel::new)
        .orElseGet(JavaKeyKernel::new);
  }
}
