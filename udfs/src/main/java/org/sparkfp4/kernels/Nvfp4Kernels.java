package org.sparkfp4.kernels;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The one place that chooses the device and the tier of the NVFP4 kernels. */
public final class Nvfp4Kernels {
  private static final Logger LOG = LoggerFactory.getLogger(Nvfp4Kernels.class);
  private static final String AUTO = "auto";
  /** Devices of which the log has said that they compute, and why. */
  private static final Set<Device> TOLD = ConcurrentHashMap.newKeySet();
  private static final CudaMemory HOST = new CudaContexts();
  private static final Nvfp4Kernel CUDA = new CudaKernel(HOST);

  private Nvfp4Kernels() {}

  /**
   * The kernel of a choice, for host memory. Call it where the tasks run: it may start CUDA.
   *
   * @throws IllegalArgumentException if the tier or the device is not to be had here, saying why
   * @throws IllegalStateException if there is a native library that cannot be used, or the choice is {@link
   *     Device#RAPIDS}: its kernels are {@link #onDeviceMemory}
   */
  public static Nvfp4Kernel chosen(KernelChoice choice) {
    return switch (choice.device()) {
      case CPU -> onCpu(choice.tier(), "the device is cpu");
      case CUDA -> cuda("the device is cuda");
      case RAPIDS -> throw new IllegalStateException("Cannot run on device rapids: the RAPIDS Accelerator left this "
          + "part of the plan to the CPU. spark.rapids.sql.explain=NOT_ON_GPU says why; device auto would go on");
      case AUTO -> CudaLibrary.absence().map(reason -> onCpu(choice.tier(), "device auto found no GPU: " + reason))
          .orElseGet(() -> cuda("device auto takes a GPU where one answers"));
    };
  }

  /**
   * Bytes of device memory that a kernel of {@link #onDeviceMemory} needs beside its data.
   *
   * @param segments of a call at most
   * @throws IllegalArgumentException if no CUDA device answers, saying why
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static long deviceScratchBytes(int segments) {
    requireCuda(Device.RAPIDS);
    return CudaBinding.scratchBytes(segments);
  }

  /**
   * The kernel that takes addresses on the current device of the calling thread, sources and results alike, and works on
   * its per-thread default stream, which has passed when a call returns. For columns of the RAPIDS Accelerator.
   *
   * @param scratch address of {@link #deviceScratchBytes} on the device, a multiple of 16; of one thread at a time
   */
  public static Nvfp4Kernel onDeviceMemory(long scratch) {
    tellRapids();
    return new CudaKernel(new CudaDeviceMemory(scratch));
  }

  /**
   * What dequantizes on the current device of the calling thread. For columns of the RAPIDS Accelerator.
   *
   * @throws IllegalArgumentException if no CUDA device answers, saying why
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static DeviceValues valuesOnDeviceMemory() {
    requireCuda(Device.RAPIDS);
    tellRapids();
    return new DeviceValues();
  }

  /**
   * Checks a choice without running anything of it.
   *
   * @throws IllegalArgumentException if the tier or the device is not to be had here, saying why
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static void require(KernelChoice choice) {
    forTier(choice.tier());
    if (choice.device() == Device.CUDA || choice.device() == Device.RAPIDS) {
      requireCuda(choice.device());
    }
  }

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

    List<Nvfp4Kernel> available = tiers();
    Nvfp4Kernel fastest = available.get(available.size() - 1);
    if (wanted.equals(AUTO)) {
      return fastest;
    }

    return available.stream().filter(kernel -> kernel.tier().equals(wanted)).findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid kernel tier: " + tier + ", available here: " + AUTO
            + ", " + available.stream().map(Nvfp4Kernel::tier).collect(Collectors.joining(", "))
            + NativeLibrary.absence().map(reason -> " (" + reason + ")").orElse("")));
  }

  /**
   * The kernels for host memory that this machine and class path have: the processor's tiers, slowest first, then the
   * GPU's. Starts CUDA.
   *
   * @throws IllegalStateException if there is a native library that cannot be used
   */
  public static List<Nvfp4Kernel> available() {
    List<Nvfp4Kernel> kernels = new ArrayList<>(tiers());
    if (CudaLibrary.absence().isEmpty()) {
      kernels.add(CUDA);
    }

    return List.copyOf(kernels);
  }

  /** The contexts by which a task's CUDA kernels of all kinds reach host memory. */
  static CudaMemory hostContexts() {
    return HOST;
  }

  private static List<Nvfp4Kernel> tiers() {
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

  private static Nvfp4Kernel cuda(String reason) {
    requireCuda(Device.CUDA);
    if (TOLD.add(Device.CUDA)) {
      LOG.info("NVFP4 kernels run on {}: {}", CudaLibrary.describe(), reason);
    }

    return CUDA;
  }

  private static void tellRapids() {
    if (TOLD.add(Device.RAPIDS)) {
      LOG.info("NVFP4 kernels run on columns of the RAPIDS Accelerator: it planned this part of the query");
    }
  }

  private static void requireCuda(Device device) {
    CudaLibrary.absence().ifPresent(reason -> {
      throw new IllegalArgumentException("Cannot run on device " + device.optionName() + ": " + reason
          + ". Run where there is a GPU, or choose device cpu or auto");
    });
  }

  private static Nvfp4Kernel onCpu(String tier, String reason) {
    Nvfp4Kernel kernel = forTier(tier);
    if (!TOLD.add(Device.CPU)) {
      return kernel;
    }

    // Whoever asked for java may have done so because the library is broken: then it must not be asked.
    Optional<String> absence = tier.equalsIgnoreCase(AUTO) ? NativeLibrary.absence() : Optional.empty();
    if (absence.isPresent()) {
      LOG.warn("NVFP4 kernels run in Java, about {} MB/s of bf16 a core: {}; {}",
          Math.round(TrialRate.bytesPerSecond(kernel) / 1e6), absence.get(), reason);
    } else {
      LOG.info("NVFP4 kernels run on the CPU, tier {}: {}", kernel.tier(), reason);
    }

    return kernel;
  }
}
