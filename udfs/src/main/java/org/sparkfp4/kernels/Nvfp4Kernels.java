package org.sparkfp4.kernels;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The one place that chooses a tier of the NVFP4 kernels. */
public final class Nvfp4Kernels {
  private static final Logger LOG = LoggerFactory.getLogger(Nvfp4Kernels.class);
  private static final String AUTO = "auto";
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  private Nvfp4Kernels() {}

  /**
   * The kernel of a tier.
   *
   * @param tier {@code java}, {@code scalar}, {@code avx2} or {@code avx512}; {@code auto} for the fastest that this
   *     processor has, which is {@code java} on a class path without the native library
   * @throws IllegalArgumentException if the tier is not to be had here, naming those that are
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static Nvfp4Kernel forTier(String tier) {
    String wanted = tier.toLowerCase(Locale.ROOT);
    if (wanted.equals("java")) {
      // Asks nothing of the library, and so is the way round one that is broken.
      return new JavaKernel();
    }

    List<Nvfp4Kernel> available = available();
    Nvfp4Kernel fastest = available.get(available.size() - 1);
    if (wanted.equals(AUTO)) {
      tellOnce(fastest);
      return fastest;
    }

    return available.stream().filter(kernel -> kernel.tier().equals(wanted)).findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid kernel tier: " + tier + ", available here: " + AUTO
            + ", " + available.stream().map(Nvfp4Kernel::tier).collect(Collectors.joining(", "))
            + NativeLibrary.absence().map(reason -> " (" + reason + ")").orElse("")));
  }

  /**
   * The kernels that this processor and class path have, slowest first.
   *
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static List<Nvfp4Kernel> available() {
    List<Nvfp4Kernel> kernels = new ArrayList<>();
    kernels.add(new JavaKernel());
    if (NativeLibrary.absence().isEmpty()) {
      for (NativeKernel.Tier tier : NativeKernel.Tier.values()) {
        if (NativeBinding.hasTier(tier.ordinal())) {
          kernels.add(new NativeKernel(tier));
        }
      }
    }

    return List.copyOf(kernels);
  }

  private static void tellOnce(Nvfp4Kernel chosen) {
    if (!TOLD.compareAndSet(false, true)) {
      return;
    }

    Optional<String> absence = NativeLibrary.absence();
    if (absence.isPresent()) {
      LOG.warn("NVFP4 kernels run in Java, about {} MB/s of bf16 a core: {}",
          Math.round(TrialRate.bytesPerSecond(chosen) / 1e6), absence.get());
    } else {
      LOG.info("NVFP4 kernels run on tier {}", chosen.tier());
    }
  }
}
