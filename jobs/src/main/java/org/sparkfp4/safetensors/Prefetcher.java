package org.sparkfp4.safetensors;

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

  /** What readers use: nothing is announced. */
  static Prefetcher standard() {
    return NONE;
  }
}
