package org.sparkfp4.kernels;

import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** {@code libsparkfp4-cuda.so}, as {@link LibraryLoader} loads it, and the devices that it finds. */
final class CudaLibrary {
  /** Names the library's file explicitly. */
  static final String PATH_KEY = "spark.fp4.cuda.path";

  private static final LibraryLoader LOADER = new LibraryLoader("sparkfp4-cuda", "the CUDA kernels", PATH_KEY,
      CudaBinding::version, KernelChoice.DEVICE_KEY + "=cpu does without");

  private CudaLibrary() {}

  /**
   * Whether CUDA kernels can run here. Starts CUDA, so not for a driver process that runs no tasks.
   *
   * @return empty where they can, else why not
   * @throws IllegalStateException where there is a library that cannot be used
   */
  static Optional<String> absence() {
    return LOADER.absence().or(() -> CudaBinding.deviceCount() > 0
        ? Optional.empty()
        : Optional.of("no CUDA device of compute capability 8.0 or later answers"));
  }

  /** The devices, for the log; only where there is no {@link #absence}. */
  static String describe() {
    return IntStream.range(0, CudaBinding.deviceCount())
        .mapToObj(device -> device + " (" + CudaBinding.deviceName(device) + ")")
        .collect(Collectors.joining(", ", "CUDA device ", ""));
  }
}
