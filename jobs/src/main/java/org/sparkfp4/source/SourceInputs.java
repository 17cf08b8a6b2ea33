package org.sparkfp4.source;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.BitSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.util.MemoryUtil;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.SourceChangedException;
import org.sparkfp4.files.UnchangedFile;

/** The source files of a task: opened when first needed, checked then, and a few kept open. */
final class SourceInputs implements Closeable {
  // members of a unit may lie in several files, and the next unit in the same ones
  private static final int MAX_OPEN = 8;

  private final List<SlabFile> files;
  private final ReadMode mode;
  private final Configuration configuration;
  private final SourceMetrics metrics;
  private final BufferPool pool = new BufferPool();
  private final MappedSlabs slabs = new MappedSlabs();
  private final BitSet used = new BitSet();
  // the least recently used first
  private final Map<Integer, SourceInput> open = new LinkedHashMap<>(16, 0.75f, true);

  SourceInputs(List<SlabFile> files, ReadMode mode, Configuration configuration, SourceMetrics metrics) {
    this.files = files;
    this.mode = mode;
    this.configuration = configuration;
    this.metrics = metrics;
  }

  ArrowBuf read(BufferAllocator allocator, ByteRange range) throws IOException {
    SourceInput input = open.get(range.file());
    if (input == null) {
      input = open(files.get(range.file()));
      used.set(range.file());
      open.put(range.file(), input);
      closeOldest();
    }

    ArrowBuf bytes = input.read(allocator, range.offset(), range.span());
    metrics.addBytes(range.length());
    if (range.gather() == null) {
      return bytes;
    }

    try (ArrowBuf span = bytes) {
      ByteBuffer buffer = pool.take(Math.toIntExact(range.length()));
      range.gather().copy(span.memoryAddress(), MemoryUtil.getByteBufferAddress(buffer));
      return allocator.wrapForeignAllocation(new PooledSlab(buffer, range.length(), pool));
    }
  }

  /**
   * Asserts that whatever was read from mappings so far was the files' own.
   *
   * @throws SourceChangedException naming a file of which some was not
   */
  void requireIntact() throws IOException {
    slabs.requireIntact();
  }

  /**
   * Asserts, once all is read, that the files are still those that were planned: bytes that were changed meanwhile may
   * be among those that were read.
   *
   * @throws SourceChangedException naming a file that is not
   */
  void requireUnchanged() throws IOException {
    for (int file = used.nextSetBit(0); file >= 0; file = used.nextSetBit(file + 1)) {
      requireUnchanged(files.get(file));
    }
  }

  private FileSystem requireUnchanged(SlabFile file) throws IOException {
    Path path = new Path(file.path());
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    UnchangedFile.require(fileSystem, path, file.length(), file.modified());
    return fileSystem;
  }

  private SourceInput open(SlabFile file) throws IOException {
    Path path = new Path(file.path());
    FileSystem fileSystem = requireUnchanged(file);
    if (!(fileSystem instanceof RawLocalFileSystem local)) {
      return new PooledInput(file.path(), new StreamReader(fileSystem.open(path)), pool);
    }

    FileChannel channel = FileChannel.open(local.pathToFile(path).toPath(), StandardOpenOption.READ);
    return mode == ReadMode.MMAP
        ? new MappedInput(file.path(), channel, slabs)
        : new PooledInput(file.path(), new ChannelReader(channel), pool);
  }

  private void closeOldest() throws IOException {
    if (open.size() > MAX_OPEN) {
      Iterator<SourceInput> oldest = open.values().iterator();
      SourceInput input = oldest.next();
      oldest.remove();
      input.close();
    }
  }

  @Override
  public void close() throws IOException {
    IOException failure = null;
    for (SourceInput input : open.values()) {
      try {
        input.close();
      } catch (IOException e) {
        failure = e;
      }
    }

    open.clear();
    pool.close();
    if (failure != null) {
      throw failure;
    }
  }
}
