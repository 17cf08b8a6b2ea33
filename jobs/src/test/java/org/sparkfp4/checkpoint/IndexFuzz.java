package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.ByteArrayInputStream;
import java.util.HashSet;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.fuzz.Hostile;

/** Any file as {@code model.safetensors.index.json}: it leads nowhere but to files directly in the folder. */
class IndexFuzz {
  private static final Path FOLDER = new Path("file:/models/model");

  @FuzzTest
  void index(byte[] file) {
    Hostile.read(file.length, () -> {
      CheckpointIndex index = CheckpointIndex.parse(FOLDER, new ByteArrayInputStream(file));

      for (String shard : new HashSet<>(index.weightMap().values())) {
        Path path = ChildPath.of(FOLDER, shard);
        java.nio.file.Path local = java.nio.file.Path.of(path.toUri().getPath()).normalize();
        assertThat(path.getParent()).as(shard).isEqualTo(FOLDER);
        assertThat(local.getParent()).as(shard).hasToString("/models/model");
        assertThat(local.getFileName()).hasToString(shard);
      }
    });
  }
}
