package org.sparkfp4.verify;

import java.util.List;
import java.util.Locale;

/** What holding files against a manifest found. */
public final class ManifestResult {
  private final int files;
  private final long bytes;
  private final Differences differences;

  ManifestResult(int files, long bytes, Differences differences) {
    this.files = files;
    this.bytes = bytes;
    this.differences = differences;
  }

  public boolean isGood() {
    return differences.count() == 0;
  }

  /** The differences in words, as many as are kept. */
  public List<String> differences() {
    return differences.first();
  }

  /** The result for a reader. */
  public String text() {
    return String.format(Locale.ROOT, "Read %,d bytes in %,d %s and compared them with the manifest%n", bytes,
        files, files == 1 ? "file" : "files")
        + differences.text();
  }
}
