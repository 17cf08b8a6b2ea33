package org.sparkfp4.kernels;

/**
 * Watches a mapping of a file for as long as it is read. A file that is shortened meanwhile, or whose storage fails,
 * has pages that cannot be had, and who touches one would end the JVM; watched, they are zeros, whoever touches them,
 * and the watch says so afterwards.
 */
public final class FaultGuard {
  private static final int NONE = -1;

  private final int watch;

  private FaultGuard(int watch) {
    this.watch = watch;
  }

  /**
   * Begins to watch a mapping. Where there is no native library nothing is watched.
   *
   * @param address of its first byte
   * @param bytes of it
   */
  public static FaultGuard of(long address, long bytes) {
    return new FaultGuard(NativeLibrary.absence().isEmpty() ? watch0(address, bytes) : NONE);
  }

  /** Whether some of what was read from the mapping was not the file's. */
  public boolean hasFaulted() {
    return watch != NONE && hasFaulted0(watch);
  }

  /** Ends the watch; called once, before the mapping is given back. */
  public void end() {
    if (watch != NONE) {
      unwatch0(watch);
    }
  }

  private static native int watch0(long address, long bytes);

  private static native boolean hasFaulted0(int watch);

  private static native void unwatch0(int watch);
}
