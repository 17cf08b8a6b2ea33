package org.sparkfp4.kernels;

import java.util.Optional;

/** {@code libsparkfp4.so}: the CPU's kernels, as {@link LibraryLoader} loads them. */
public final class NativeLibrary {
  /** Names the library's file explicitly. */
  public static final String PATH_KEY = "spark.fp4.native.path";

  private static final LibraryLoader LOADER = new LibraryLoader(
      "sparkfp4", "the native kernels", PATH_KEY, NativeBinding::version, KernelChoice.TIER_KEY + "=java does without");

  private NativeLibrary() {}

  /**
   * Has the operating system read a range of a file mapping ahead. A hint: does nothing where there is no library.
   *
   * @param address of the first byte, of any alignment
   * @param bytes how many
   */
  public static void prefetch(long address, long bytes) {
    if (absence().isEmpty()) {
      NativeBinding.prefetch(address, bytes);
    }
  }

  /**
   * Prepares a file mapping that nobody reads any more for being unmapped, which then keeps no other thread waiting. A hint:
   * does nothing where there is no library.
   *
   * @param address of the first byte, of any alignment
   * @param bytes how many, to the mapping's end
   */
  public static void letGo(long address, long bytes) {
    if (absence().isEmpty()) {
      NativeBinding.letGo(address, bytes);
    }
  }

  /**
   * Loads the library unless it is there already.
   *
   * @return empty where it is loaded, else why this class path has none
   * @throws IllegalStateException where there is one that cannot be used
   */
  static Optional<String> absence() {
    return LOADER.absence();
  }
}
