package org.sparkfp4.sink;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.output.ShardOutput;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;

class StackedBytesTest {
  @TempDir
  private Path folder;

  @ParameterizedTest
  @CsvSource({"1, 1, 1", "3, 5, 64", "2, 130, 65", "2, 7, 200"})
  void putsRowsInnermost(int matrices, int rows, int cols) throws IOException {
    byte[] bytes = new byte[matrices * rows * cols];
    new Random(matrices).nextBytes(bytes);
    byte[] expected = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      int matrix = i / (rows * cols);
      int row = i / cols % rows;
      expected[(matrix * cols + i % cols) * rows + row] = bytes[i];
    }

    ByteBuffer padded = ByteBuffer.allocateDirect(bytes.length + 3).position(3);
    padded.put(bytes).position(3);
    assertThat(written(out -> new StackedBytes(rows, cols).write(padded, out))).isEqualTo(expected);
  }

  @Test
  void whatWaitsComesBackFromMemoryAndFromAFile() throws IOException {
    byte[] piece = new byte[5 << 20];
    new Random(1).nextBytes(piece);
    ByteSpool spool = new ByteSpool();
    for (int pieces : new int[] {1, 9, 2}) {
      byte[] expected = new byte[pieces * piece.length];
      for (int i = 0; i < pieces; i++) {
        spool.write(ByteBuffer.wrap(piece));
        System.arraycopy(piece, 0, expected, i * piece.length, piece.length);
      }

      assertThat(spool.length()).isEqualTo(expected.length);
      assertThat(written(spool::drainTo)).isEqualTo(expected);
      assertThat(spool.length()).isZero();
    }
  }

  private byte[] written(Content content) throws IOException {
    TaskFiles files = new TaskFiles(new TaskOutput(folder.toUri().toString(), "auto", "run"), new Configuration(), 1);
    try (StagedFile out = files.begin(0, "written")) {
      content.writeTo(out);
      out.finish();
    }

    return Files.readAllBytes(folder.resolve("written"));
  }

  private interface Content {
    void writeTo(ShardOutput out) throws IOException;
  }
}
