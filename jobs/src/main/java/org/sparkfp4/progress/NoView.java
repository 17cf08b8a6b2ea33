package org.sparkfp4.progress;

/** Nothing is seen. */
final class NoView implements ProgressView {
  @Override
  public void show(Progress progress) {
    // as asked
  }

  @Override
  public void close() {
    // nothing is open
  }
}
