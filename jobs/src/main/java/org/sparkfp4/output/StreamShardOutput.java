package org.sparkfp4.output;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.StreamCapabilities;
import org.sparkfp4.files.Sha256;

/** A shard on any Hadoop file system, through its output stream. */
final class StreamShardOutput implements ShardOutput {
  private final FSDataOutputStream stream;
  private final Sha256 digest = new Sha256();
  private final byte[] piece = new byte[1 << 20];
  private long length;
  private boolean finished;

  StreamShardOutput(FSDataOutputStream stream) {
    this.stream = stream;
  }

  @Override
  public void write(ByteBuffer bytes) throws IOException {
    ByteBuffer rest = bytes.duplicate();
    while (rest.hasRemaining()) {
      int n = Math.min(piece.length, rest.remaining());
      rest.get(piece, 0, n);
      digest.update(ByteBuffer.wrap(piece, 0, n));
      stream.write(piece, 0, n);
      length += n;
    }
  }

  @Override
  public long length() {
    return length;
  }

  @Override
  public String finish() throws IOException {
    if (stream.hasCapability(StreamCapabilities.HSYNC)) {
      stream.hsync();
    }

    stream.close();
    finished = true;
    return digest.hex();
  }

  @Override
  public boolean isGoneWhenUnfinished() {
    return stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM);
  }

  @Override
  public void close() throws IOException {
    // on an object store closing would publish what is there so far
    if (!finished && isGoneWhenUnfinished()) {
      stream.abort();
    }

    stream.close();
  }
}
