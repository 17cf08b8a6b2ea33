package org.sparkfp4.source;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.files.SourceChangedException;

/** A task's reads of byte ranges, mapped where that can be; files are refused that changed since they were planned. */
public final class FileRanges implements Closeable {
  private final SourceInputs inputs;

  /**
   * @param files as the driver saw them
   * @param read how local files are read: mmap or pread
   */
  public FileRanges(List<SlabFile> files, String read, Configuration configuration) {
    this.inputs = new SourceInputs(files, ReadMode.of(read), configuration, new SourceMetrics());
  }

  /**
   * Bytes of a file; the buffer is the caller's.
   *
   * @param file number of the file
   * @param offset first byte
   * @param length bytes, 1 to 2^31 - 9
   * @throws SourceChangedException when the file is not the one that was planned
   */
  public ArrowBuf read(BufferAllocator allocator, int file, long offset, long length) throws IOException {
    return inputs.read(allocator, new ByteRange(file, offset, length));
  }

  /**
   * Asserts that what was read so far was what the driver saw; what is made of it is not to be believed before.
   *
   * @throws SourceChangedException naming a file that was shortened or changed
   */
  public void requireUnchanged() throws IOException {
    inputs.requireIntact();
    inputs.requireUnchanged();
  }

  @Override
  public void close() throws IOException {
    inputs.close();
  }
}
