package org.sparkfp4.output;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.Path;

/** A shard whose failures say which file could not be written: the operating system's own message does not. */
final class NamedShardOutput implements ShardOutput {
  private final Path path;
  private final ShardOutput out;

  NamedShardOutput(Path path, ShardOutput out) {
    this.path = path;
    this.out = out;
  }

  /** What to tell of a file that cannot be written. */
  static IOException failure(Path path, IOException cause) {
    String reason = cause.getMessage() == null ? cause.toString() : cause.getMessage();
    return new IOException(
        "Cannot write " + path + ": " + reason + "; make room or mend what is wrong there, then start the same command "
            + "again: finished shards are kept",
        cause);
  }

  @Override
  public void write(ByteBuffer bytes) throws IOException {
    try {
      out.write(bytes);
    } catch (IOException e) {
      throw failure(path, e);
    }
  }

  @Override
  public long length() {
    return out.length();
  }

  @Override
  public String finish() throws IOException {
    try {
      return out.finish();
    } catch (IOException e) {
      throw failure(path, e);
    }
  }

  @Override
  public boolean isGoneWhenUnfinished() {
    return out.isGoneWhenUnfinished();
  }

  @Override
  public void close() throws IOException {
    out.close();
  }
}
