package org.sparkfp4.verify;

import java.util.List;
import java.util.Locale;

/** What holding files against a manifest found. */
public final class ManifestResult {
  private final List<VerifiedFile> files;
  private final Differences differences;

  ManifestResult(List<VerifiedFile> files, Differences differences) {
    this.files = files;
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
    List<VerifiedFile> read = files.stream().filter(VerifiedFile::read).toList();
    return String.format(Locale.ROOT, "Read %,d bytes in %,d %s and compared them with the manifest%n",
        read.stream().mapToLong(VerifiedFile::bytes).sum(), read.size(),
        read.size() == 1 ? "file" : "files") + differences.text();
  }
}
