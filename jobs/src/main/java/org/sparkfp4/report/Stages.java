package org.sparkfp4.report;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** Measures the parts of a run, on the driver's clock. */
public final class Stages {
  private final Instant begun = Instant.now();
  private final List<Stage> done = new ArrayList<>();
  private long mark = System.nanoTime();

  /** Ends the part that began with the run or when the last one ended. */
  public void end(String name, long bytesIn, long bytesOut) {
    long now = System.nanoTime();
    done.add(new Stage(name, (now - mark) / 1e9, bytesIn, bytesOut));
    mark = now;
  }

  /** The parts, in their order. */
  public List<Stage> list() {
    return List.copyOf(done);
  }

  Instant begun() {
    return begun;
  }
}
