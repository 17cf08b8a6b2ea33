package org.sparkfp4.output;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.sparkfp4.files.Sha256;

/** A shard on a local file system: off-heap bytes go to the file without a copy. */
final class LocalShardOutput implements ShardOutput {
  /** Small enough that what was just hashed is still in the cache when it is written. */
  private static final int PIECE = 1 << 20;

  private final FileChannel channel;
  private final Sha256 digest = new Sha256();
  private long length;

  LocalShardOutput(Path file) throws IOException {
    channel =
        FileChannel.open(
            file, StandardOpenOption.CREATE, StandardOpenOption.TRUNCATE_EXISTING, StandardOpenOption.WRITE);
  }

  @Override
  public void write(ByteBuffer bytes) throws IOException {
    ByteBuffer rest = bytes.duplicate();
    while (rest.hasRemaining()) {
      ByteBuffer piece = rest.slice(rest.position(), Math.min(PIECE, rest.remaining()));
      rest.position(rest.position() + piece.remaining());
      digest.update(piece);
      length += piece.remaining();
      while (piece.hasRemaining()) {
        channel.write(piece);
      }
    }
  }

  @Override
  public long length() {
    return length;
  }

  @Override
  public String finish() throws IOException {
    channel.force(true);
    channel.close();
    return digest.hex();
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
