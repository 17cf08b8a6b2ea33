package org.sparkfp4.kernels;

import java.util.List;

/** The products of the processor's tiers that {@link Nvfp4Kernels} has. */
public final class ProductKernels {
  private ProductKernels() {}

  /**
   * The kernel of a tier, named and chosen as {@link Nvfp4Kernels#forTier} does.
   *
   * @throws IllegalArgumentException if the tier is not to be had here, naming those that are
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static ProductKernel forTier(String tier) {
    return of(Nvfp4Kernels.forTier(tier));
  }

  /** The kernels that this processor and class path have, slowest first. */
  public static List<ProductKernel> available() {
    return Nvfp4Kernels.available().stream()
        .filter(kernel -> !(kernel instanceof CudaKernel))
        .map(ProductKernels::of)
        .toList();
  }

  private static ProductKernel of(Nvfp4Kernel chosen) {
    return NativeKernel.Tier.named(chosen.tier())
        .<ProductKernel>map(NativeProductKernel::new)
        .orElseGet(JavaProductKernel::new);
  }
}
