package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.Map;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.ShardRecord;

/** How far a folder of ours is, by the names and lengths of its files. */
final class OutputState {
  private final OutputFolder folder;

  OutputState(OutputFolder folder) {
    this.folder = folder;
  }

  /** Whether a run was begun in the folder that has not ended. */
  boolean isBegun() throws IOException {
    return folder.fs().exists(folder.staging().root());
  }

  /** The state in words; null of a folder that no run of ours wrote. */
  String text() throws IOException {
    if (isBegun()) {
      return "not finished: a run was begun there, and the same command finishes it";
    }

    Manifest manifest = folder.manifest();
    if (manifest == null) {
      return null;
    }

    Map<String, Long> lengths = folder.lengths();
    for (ShardRecord shard : manifest.shards()) {
      if (!Long.valueOf(shard.length()).equals(lengths.get(shard.file()))) {
        return "damaged: by the manifest " + shard.file() + " has " + shard.length() + " bytes, "
            + (lengths.containsKey(shard.file()) ? "there are " + lengths.get(shard.file()) : "and it is missing")
            + "; copy it again, or remove the folder and make it anew";
      }
    }

    return lengths.containsKey(OutputFolder.INDEX)
        ? "finished; verify --manifest holds each byte to the manifest"
        : "not finished: " + OutputFolder.INDEX + " is missing, and the command that makes the output writes it";
  }
}
