package org.sparkfp4.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.List;
import java.util.Random;
import java.util.function.IntFunction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.files.RawFileSystem;

/** On streams that give ranges, as object stores' do and those of Hadoop's own local file system. */
class StreamReaderTest {
  private final byte[] content = new byte[5 << 20];

  @TempDir
  private java.nio.file.Path folder;

  private Path file;
  private int ranges;

  @BeforeEach
  void write() throws IOException {
    new Random(3).nextBytes(content);
    file = new Path(Files.write(folder.resolve("file"), content).toUri());
  }

  @Test
  void rangesAreReadByOneRequestEach() throws IOException {
    try (StreamReader reader = new StreamReader(open(false))) {
      requireRead(reader, 0, 3 << 20);
      requireRead(reader, 4 << 20, 1 << 20);
      requireRead(reader, 17, 1234);
    }

    assertThat(ranges).isEqualTo(3);
  }

  @Test
  void brokenConnectionIsReadOnceMore() throws IOException {
    try (StreamReader reader = new StreamReader(open(true))) {
      requireRead(reader, 3, 3 << 20);
      requireRead(reader, 0, 5);
    }

    assertThat(ranges).isEqualTo(2);
  }

  @Test
  void endOfTheFileIsToldFromABrokenConnection() throws IOException {
    try (StreamReader reader = new StreamReader(open(false))) {
      assertThatThrownBy(() -> reader.readFully(content.length - 10, ByteBuffer.allocateDirect(11)))
          .isInstanceOf(EOFException.class);
    }
  }

  private FSDataInputStream open(boolean broken) throws IOException {
    FSDataInputStream in = RawFileSystem.of(file, new Configuration()).open(file);
    assertThat(in.hasCapability(StreamCapabilities.VECTOREDIO)).isTrue();
    assertThat(in.hasCapability(StreamCapabilities.PREADBYTEBUFFER)).isFalse();
    return new FSDataInputStream(in) {
      @Override
      public void readVectored(List<? extends FileRange> wanted, IntFunction<ByteBuffer> allocate) throws IOException {
        ranges += wanted.size();
        if (broken) {
          // some bytes came before it broke
          allocate.apply(wanted.get(0).getLength()).put((byte) 1);
          throw new IOException("Connection reset");
        }

        super.readVectored(wanted, allocate);
      }
    };
  }

  private void requireRead(StreamReader reader, int position, int length) throws IOException {
    ByteBuffer target = ByteBuffer.allocateDirect(length);
    reader.readFully(position, target.slice());
    assertThat(target).isEqualTo(ByteBuffer.wrap(content, position, length));
  }
}
