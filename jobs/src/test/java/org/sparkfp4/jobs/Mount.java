package org.sparkfp4.jobs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.assertj.core.api.Assumptions;

/** A file system in memory of a size of its own; what root may make. */
final class Mount implements AutoCloseable {
  private final Path folder;

  private Mount(Path folder) {
    this.folder = folder;
  }

  /** Mounts it on a new folder; where that is not allowed the test is skipped, in CI it fails. */
  static Mount ofSize(Path folder, long bytes) throws IOException {
    Files.createDirectory(folder);
    boolean mounted = run("mount", "-t", "tmpfs", "-o", "size=" + bytes, "tmpfs", folder.toString());
    if (!mounted && System.getenv("CI") == null) {
      Assumptions.assumeThat(mounted).as("may mount").isTrue();
    }

    if (!mounted) {
      throw new IllegalStateException("Cannot mount a file system on " + folder + ": CI runs as root");
    }

    return new Mount(folder);
  }

  Path folder() {
    return folder;
  }

  /** Whether it could be made read-only: not while a file in it is open for writing. */
  boolean makeReadOnly() {
    return run("mount", "-o", "remount,ro", folder.toString());
  }

  void makeWritable() {
    if (!run("mount", "-o", "remount,rw", folder.toString())) {
      throw new IllegalStateException("Cannot make " + folder + " writable again");
    }
  }

  @Override
  public void close() {
    // lazily: an executor that is being killed may still have a file open
    run("umount", "-l", folder.toString());
  }

  private static boolean run(String... command) {
    try {
      return new ProcessBuilder(command)
          .redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .redirectError(ProcessBuilder.Redirect.DISCARD)
          .start()
          .waitFor() == 0;
    } catch (IOException | InterruptedException e) {
      throw new IllegalStateException("Cannot run " + String.join(" ", command), e);
    }
  }
}
