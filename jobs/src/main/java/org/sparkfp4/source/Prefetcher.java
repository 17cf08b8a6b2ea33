package org.sparkfp4.source;

import org.sparkfp4.kernels.NativeLibrary;

/** Is told which mapped memory will be read next, while the batch before it is in use. */
interface Prefetcher {
  Prefetcher NONE = (address, length) -> {};

  /**
   * Announces a range.
   *
   * @param address its first byte
   * @param length its bytes
   */
  void willNeed(long address, long length);

  /** What readers use: the operating system reads the pages while the batch before is computed. */
  static Prefetcher standard() {
    return NativeLibrary::prefetch;
  }
}
