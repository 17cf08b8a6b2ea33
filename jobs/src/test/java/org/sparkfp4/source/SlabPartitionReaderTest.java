package org.sparkfp4.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import java.util.zip.CRC32C;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.SourceChangedException;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.kernels.Nvfp4Kernel;
import org.sparkfp4.kernels.Nvfp4Kernels;
import org.sparkfp4.safetensors.DType;

class SlabPartitionReaderTest {
  private static final StructType SCHEMA = SourceSchema.PLANNED;

  @TempDir
  Path temporary;

  private Path file;
  private byte[] bytes;

  @BeforeEach
  void write() throws IOException {
    file = temporary.resolve("slabs.safetensors");
    new SafetensorsFixture().add("a", DType.U8, 3L, 100_001L).write(file, 7);
    bytes = Files.readAllBytes(file);
  }

  @ParameterizedTest
  @EnumSource(ReadMode.class)
  void batchesHoldTheBytesAndGoWhenClosed(ReadMode mode) throws IOException {
    long before = ArrowUtils.rootAllocator().getAllocatedMemory();
    try (SlabPartitionReader reader = reader(mode, SCHEMA, Prefetcher.NONE)) {
      for (int slab = 0; slab < 3; slab++) {
        assertThat(reader.next()).isTrue();
        assertThat(reader.get().numRows()).isEqualTo(1);
        assertThat(reader.get().column(0).getInt(0)).isEqualTo(5);
        assertThat(reader.get().column(1).getInt(0)).isEqualTo(slab);
        assertThat(reader.get().column(2).getUTF8String(0)).hasToString("unit");
        assertThat(reader.get().column(5).isNullAt(0)).isEqualTo(slab != 1);
        assertThat(reader.get().column(6).getBinary(0)).isEqualTo(slice(slab));
        assertThat(reader.get().column(7).isNullAt(0)).isEqualTo(slab != 2);
        assertThat(reader.get().column(8).isNullAt(0)).isTrue();
        assertThat(mappings()).isEqualTo(mode == ReadMode.PREAD ? 0 : slab == 2 ? 2 : 1);
      }

      assertThat(reader.get().column(7).getBinary(0)).isEqualTo(slice(0));
      assertThat(reader.next()).isFalse();
      assertThat(mappings()).isZero();
    }

    assertThat(ArrowUtils.rootAllocator().getAllocatedMemory()).isEqualTo(before);
  }

  @Test
  void closingEarlyUnmaps() throws IOException {
    List<Long> announced = new ArrayList<>();
    SlabPartitionReader reader = reader(ReadMode.MMAP, SCHEMA, (address, length) -> {
      assertThat(MemoryUtil.getByte(address)).isEqualTo(slice(1)[0]);
      announced.add(length);
    });
    assertThat(reader.next()).isTrue();
    assertThat(announced).containsExactly(100_001L);
    assertThat(reader.get().column(6).getBinary(0)).isEqualTo(slice(0));
    assertThat(mappings()).isEqualTo(2);
    reader.close();
    assertThat(mappings()).isZero();
  }

  @Test
  void announcesEveryPayloadButTheFirst() throws IOException {
    List<Long> announced = new ArrayList<>();
    try (SlabPartitionReader reader =
        reader(ReadMode.MMAP, SCHEMA, (address, length) -> announced.add(length))) {
      for (int slab = 0; reader.next(); slab++) {
        assertThat(reader.get().column(6).getBinary(0)).isEqualTo(slice(slab));
      }
    }

    assertThat(announced).containsExactly(100_001L, 100_001L, 100_001L);
    assertThat(mappings()).isZero();
  }

  @Test
  void whatIsRetainedOutlivesItsBatch() throws IOException {
    try (SlabPartitionReader reader = reader(ReadMode.PREAD, SCHEMA, Prefetcher.NONE)) {
      assertThat(reader.next()).isTrue();
      ArrowBuf first = payload(reader);
      first.getReferenceManager().retain();
      assertThat(reader.next()).isTrue();
      byte[] kept = new byte[100_001];
      first.getBytes(0, kept);
      assertThat(kept).isEqualTo(slice(0));
      assertThat(payload(reader).memoryAddress()).isNotEqualTo(first.memoryAddress());
      first.getReferenceManager().release();
    }
  }

  @Test
  void whatIsNeverReleasedIsAnError() throws IOException {
    SlabPartitionReader reader = reader(ReadMode.MMAP, SCHEMA, Prefetcher.NONE);
    assertThat(reader.next()).isTrue();
    ArrowBuf kept = payload(reader);
    kept.getReferenceManager().retain();
    assertThatThrownBy(reader::close)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("Memory was leaked")
        .hasMessageContaining("safetensors-test");
  }

  @Test
  void prunedPayloadIsNeverOpened() throws IOException {
    StructType names = new StructType().add(SCHEMA.apply("slab")).add(SCHEMA.apply("name"));
    Files.delete(file);
    try (SlabPartitionReader reader = reader(ReadMode.MMAP, names, Prefetcher.NONE)) {
      assertThat(reader.next()).isTrue();
      assertThat(reader.get().numRows()).isEqualTo(3);
      assertThat(reader.get().column(0).getInt(2)).isEqualTo(2);
      assertThat(reader.next()).isFalse();
    }

    try (SlabPartitionReader reader = reader(ReadMode.MMAP, SCHEMA, Prefetcher.NONE)) {
      assertThatThrownBy(reader::next)
          .isInstanceOf(SourceChangedException.class)
          .hasMessageContaining("slabs.safetensors: it is gone since it was planned");
    }
  }

  @ParameterizedTest
  @EnumSource(ReadMode.class)
  void fileThatShrinksWhileItIsRead(ReadMode mode) throws IOException {
    try (SlabPartitionReader reader = reader(mode, SCHEMA, Prefetcher.NONE)) {
      assertThat(reader.next()).isTrue();
      truncate(bytes.length - 200_000L);

      assertThatThrownBy(reader::next)
          .isInstanceOf(SourceChangedException.class)
          .hasMessageStartingWith("Cannot read " + file.toUri())
          .hasMessageContaining(" are wanted, but it ");
    }
  }

  /** Whoever touches the pages: a kernel, Java's own checksum, a copy to the heap. Unwatched, one would end the JVM. */
  @Test
  void bytesThatAreGoneFromUnderTheirMapping() throws IOException {
    List<Consumer<ArrowBuf>> touches = new ArrayList<>();
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      touches.add(payload -> assertThat(
          kernel.amax(ElementType.BF16, new long[] {payload.memoryAddress()}, new long[] {50_000})).isZero());
    }

    touches.add(payload -> new CRC32C().update(payload.nioBuffer(0, 100_001)));
    touches.add(payload -> assertThat(bytes(payload)).endsWith((byte) 0, (byte) 0));
    for (Consumer<ArrowBuf> touch : touches) {
      Files.write(file, bytes);
      try (SlabPartitionReader reader = reader(ReadMode.MMAP, SCHEMA, Prefetcher.NONE)) {
        assertThat(reader.next()).isTrue();
        truncate(10);
        touch.accept(payload(reader));
        assertThatThrownBy(reader::next)
            .isInstanceOf(SourceChangedException.class)
            .hasMessageStartingWith("Cannot read " + file.toUri() + ": bytes of it were gone when they were read");
      }

      assertThat(mappings()).isZero();
    }
  }

  @Test
  void retainedBytesThatAreGone() throws IOException {
    try (SlabPartitionReader reader = reader(ReadMode.MMAP, SCHEMA, Prefetcher.NONE)) {
      assertThat(reader.next()).isTrue();
      try (ArrowBuf kept = payload(reader)) {
        kept.getReferenceManager().retain();
        assertThat(reader.next()).isTrue();
        truncate(10);
        bytes(kept);
        assertThatThrownBy(reader::next).isInstanceOf(SourceChangedException.class);
      }
    }
  }

  /** What changed in place, or lost less than a page, faults nowhere. */
  @ParameterizedTest
  @EnumSource(ReadMode.class)
  void fileThatChangesWhileItIsRead(ReadMode mode) throws IOException {
    try (SlabPartitionReader reader = reader(mode, SCHEMA, Prefetcher.NONE)) {
      for (int slab = 0; slab < 3; slab++) {
        assertThat(reader.next()).isTrue();
      }

      Files.write(file, new byte[bytes.length]);
      Files.setLastModifiedTime(file, FileTime.fromMillis(1_000_000));
      assertThatThrownBy(reader::next)
          .isInstanceOf(SourceChangedException.class)
          .hasMessageContaining("it was modified at 1000000, after it was planned as of ");
    }
  }

  private void truncate(long length) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.truncate(length);
    }
  }

  private static byte[] bytes(ArrowBuf payload) {
    byte[] copy = new byte[100_001];
    payload.getBytes(0, copy);
    return copy;
  }

  @Test
  void fileOfAnotherLength() throws IOException {
    try (SlabPartitionReader reader = reader(ReadMode.MMAP, SCHEMA, Prefetcher.NONE)) {
      Files.write(file, new byte[12]);
      assertThatThrownBy(reader::next)
          .isInstanceOf(SourceChangedException.class)
          .hasMessageContaining("it has 12 bytes, but had " + bytes.length + " when it was planned");
    }
  }

  @Test
  void streamOfAnyFileSystem() throws IOException {
    Path large = temporary.resolve("stream.safetensors");
    new SafetensorsFixture().add("a", DType.U8, 3_000_001L).write(large, 3);
    byte[] expected = Files.readAllBytes(large);
    org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(large.toUri());
    FileSystem fileSystem = RawFileSystem.of(path, new Configuration());
    try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("stream", 0, Long.MAX_VALUE);
        BufferPool pool = new BufferPool();
        PooledInput input = new PooledInput(large.toString(), new StreamReader(fileSystem.open(path)), pool)) {
      int length = expected.length - 5;
      try (ArrowBuf buffer = input.read(allocator, 5, length)) {
        byte[] read = new byte[length];
        buffer.getBytes(0, read);
        assertThat(read).isEqualTo(Arrays.copyOfRange(expected, 5, expected.length));
      }

      assertThatThrownBy(() -> input.read(allocator, 6, length))
          .isInstanceOf(SourceChangedException.class)
          .hasMessageContaining("but it ends before");
    }
  }

  @ParameterizedTest
  @EnumSource(ReadMode.class)
  void rangeBehindSixGibibytes(ReadMode mode) throws IOException {
    Path large = temporary.resolve("large.safetensors");
    new SafetensorsFixture().add("a", DType.U8, 7L << 30).writeSparse(large, new byte[] {1, 2, 3});
    SourceRow row = SourceRow.of(
        0, 0, "a", "U8", 5L, null, new ByteRange(0, Files.size(large) - 5, 5), null, null, null, null, null,
        null, null);
    SlabPartition partition = new SlabPartition(List.of(SafetensorsFixture.slabFile(large)), List.of(row));
    StructType data = new StructType().add(SCHEMA.apply("data0"));
    try (SlabPartitionReader reader = new SlabPartitionReader(
        partition, SCHEMA, data, mode, new Configuration(), "safetensors-test", Prefetcher.NONE)) {
      assertThat(reader.next()).isTrue();
      assertThat(reader.get().column(0).getBinary(0)).containsExactly(0, 0, 1, 2, 3);
    }
  }

  @Test
  void poolReusesBuffers() {
    try (BufferPool pool = new BufferPool()) {
      var small = pool.take(10);
      assertThat(small.capacity()).isEqualTo(1 << 20);
      pool.give(small);
      assertThat(pool.take(1 << 20)).isSameAs(small);
      pool.give(small);
      var large = pool.take((1 << 20) + 1);
      assertThat(large).isNotSameAs(small);
      assertThat(large.capacity()).isEqualTo(2 << 20);
      pool.give(large);
      assertThat(pool.take(1)).isSameAs(large);
      pool.give(large);
    }
  }

  private SlabPartitionReader reader(ReadMode mode, StructType required, Prefetcher prefetcher) throws IOException {
    long start = bytes.length - 3 * 100_001L;
    List<SourceRow> rows = new ArrayList<>();
    for (int slab = 0; slab < 3; slab++) {
      rows.add(SourceRow.of(
          5, slab, "unit", "U8", 100_001L, slab == 1 ? 0.5f : null,
          new ByteRange(0, start + slab * 100_001L, 100_001),
          slab == 2 ? new ByteRange(0, start, 100_001) : null,
          null, null, null, null, null, null));
    }

    SlabFile slabFile = Files.exists(file)
        ? SafetensorsFixture.slabFile(file)
        : new SlabFile(file.toUri().toString(), bytes.length, 0);
    return new SlabPartitionReader(
        new SlabPartition(List.of(slabFile), rows), SCHEMA, required, mode, new Configuration(), "safetensors-test",
        prefetcher);
  }

  private byte[] slice(int slab) {
    int start = bytes.length - (3 - slab) * 100_001;
    return Arrays.copyOfRange(bytes, start, start + 100_001);
  }

  private static ArrowBuf payload(SlabPartitionReader reader) {
    return ((VarBinaryVector) ((ArrowColumnVector) reader.get().column(6)).getValueVector()).getDataBuffer();
  }

  private long mappings() throws IOException {
    return Files.readAllLines(Path.of("/proc/self/maps")).stream()
        .filter(line -> line.endsWith(file.toString()))
        .count();
  }
}
