package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

class NamedShardOutputTest {
  @Test
  @EnabledOnOs(OS.LINUX)
  void fullDiskIsToldWithTheFileAndTheRemedy() throws IOException {
    Path path = new Path("/dev/full");
    try (ShardOutput out = new NamedShardOutput(path, new LocalShardOutput(java.nio.file.Path.of("/dev/full")))) {
      assertThatThrownBy(() -> out.write(ByteBuffer.allocate(100)))
          .isInstanceOf(IOException.class)
          .hasMessage("Cannot write /dev/full: No space left on device; make room or mend what is wrong there, then "
              + "start the same command again: finished shards are kept");
    }
  }
}
