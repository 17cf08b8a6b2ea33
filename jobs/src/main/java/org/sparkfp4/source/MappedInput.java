package org.sparkfp4.source;

import java.io.IOException;
import java.nio.channels.FileChannel;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.files.SourceChangedException;

/** A local file whose ranges are mapped. */
final class MappedInput implements SourceInput {
  private final String file;
  private final FileChannel channel;
  private final MappedSlabs slabs;

  MappedInput(String file, FileChannel channel, MappedSlabs slabs) {
    this.file = file;
    this.channel = channel;
    this.slabs = slabs;
  }

  @Override
  public ArrowBuf read(BufferAllocator allocator, long offset, long length) throws IOException {
    long size = channel.size();
    if (offset + length > size) {
      throw new SourceChangedException(
          file, "bytes " + offset + " to " + (offset + length) + " are wanted, but it has " + size + " by now");
    }

    return allocator.wrapForeignAllocation(
        slabs.slab(file, channel.map(FileChannel.MapMode.READ_ONLY, offset, length)));
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
