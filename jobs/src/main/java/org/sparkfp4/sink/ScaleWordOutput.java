package org.sparkfp4.sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.sparkfp4.output.ShardOutput;

/** Exchanges bytes 1 and 2 of each word of four block scales on their way into a shard. */
final class ScaleWordOutput implements ShardOutput {
  private static final int WORD = 4;
  private static final int PIECE = 1 << 16;

  private final ShardOutput out;

  ScaleWordOutput(ShardOutput out) {
    this.out = out;
  }

  @Override
  public void write(ByteBuffer bytes) throws IOException {
    ByteBuffer rest = bytes.duplicate();
    while (rest.hasRemaining()) {
      byte[] words = new byte[Math.min(PIECE, rest.remaining())];
      rest.get(words);
      for (int at = 0; at < words.length; at += WORD) {
        byte second = words[at + 1];
        words[at + 1] = words[at + 2];
        words[at + 2] = second;
      }

      out.write(ByteBuffer.wrap(words));
    }
  }

  @Override
  public long length() {
    return out.length();
  }

  @Override
  public String finish() {
    throw new UnsupportedOperationException("Cannot finish a shard by its scales");
  }

  @Override
  public void close() throws IOException {
    out.close();
  }
}
