package org.sparkfp4.kernels;

import java.util.List;

/** The layout kernels of the devices and tiers that {@link Nvfp4Kernels} has. */
public final class LayoutKernels {
  private static final LayoutKernel CUDA = new NativeLayoutKernel(new CudaLayoutCalls(Nvfp4Kernels.hostContexts()));

  private LayoutKernels() {}

  /**
   * The kernel of a choice, as {@link Nvfp4Kernels#chosen} settles it.
   *
   * @throws IllegalArgumentException if the tier or the device is not to be had here, saying why
   * @throws IllegalStateException if there is a native library that cannot be used, or the choice is {@link
   *     Device#RAPIDS}
   */
  public static LayoutKernel chosen(KernelChoice choice) {
    return of(Nvfp4Kernels.chosen(choice));
  }

  /**
   * The kernel of a tier, named and chosen as {@link Nvfp4Kernels#forTier} does.
   *
   * @throws IllegalArgumentException if the tier is not to be had here, naming those that are
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static LayoutKernel forTier(String tier) {
    return of(Nvfp4Kernels.forTier(tier));
  }

  /** The kernels that this machine and class path have: the processor's, slowest first, then the GPU's. */
  public static List<LayoutKernel> available() {
    return Nvfp4Kernels.available().stream().map(LayoutKernels::of).toList();
  }

  private static LayoutKernel of(Nvfp4Kernel chosen) {
    if (chosen instanceof CudaKernel) {
      return CUDA;
    }

    return NativeKernel.Tier.named(chosen.tier())
        .<LayoutKernel>map(tier -> new NativeLayoutKernel(new CpuLayoutCalls(tier)))
        .orElseGet(JavaLayoutKernel::new);
  }
}
