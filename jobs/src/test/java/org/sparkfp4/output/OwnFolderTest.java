package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class OwnFolderTest {
  @TempDir private java.nio.file.Path temporary;

  private StagingFolder staging;

  @BeforeEach
  void open() throws IOException {
    Path path = new Path(temporary.toUri());
    staging = new StagingFolder(Storage.of(path, new Configuration(), "auto").fs(), path);
  }

  @ParameterizedTest
  @EnumSource(RunKind.class)
  void aBegunRunIsLeftToItsOwnKind(RunKind begun) throws IOException {
    Files.createDirectories(temporary.resolve(StagingFolder.NAME));
    Files.writeString(temporary.resolve("_sparkfp4/plan.json"), "{ \"" + begun.planField() + "\": {}}");
    for (RunKind kind : RunKind.values()) {
      if (kind == begun || begun.planField() == null) {
        OwnFolder.require(staging, kind, () -> false);
      } else {
        assertThatThrownBy(() -> OwnFolder.require(staging, kind, () -> false))
            .as(kind.toString())
            .isInstanceOf(IOException.class)
            .hasMessageContaining(": another command began a run there; finish it, remove the folder, or choose another");
      }
    }
  }

  @Test
  void aFinishedRunIsOwnWhateverElseIsThere() throws IOException {
    Files.writeString(temporary.resolve("notes.txt"), "mine");

    OwnFolder.require(staging, RunKind.CACHE, () -> true);
    assertThatThrownBy(() -> OwnFolder.require(staging, RunKind.CACHE, () -> false))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("it is not empty and holds no cache of Spark FP4 (it has notes.txt)");
  }
}
