package org.sparkfp4.progress;

import java.util.ArrayList;
import java.util.List;

/** Keeps what it is shown. */
class RecordedView implements ProgressView {
  final List<Progress> shown = new ArrayList<>();
  boolean closed;

  @Override
  public void show(Progress progress) {
    shown.add(progress);
  }

  @Override
  public void close() {
    closed = true;
  }
}
