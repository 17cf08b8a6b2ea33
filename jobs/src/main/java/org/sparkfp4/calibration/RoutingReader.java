package org.sparkfp4.calibration;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.safetensors.DType;

/** Reads which experts some tokens go to. Keeps the file of the last call open. */
final class RoutingReader implements Closeable {
  private final Configuration conf;
  private String name;
  private FSDataInputStream file;

  RoutingReader(Configuration conf) {
    this.conf = conf;
  }

  /** The experts of each token. */
  long[][] read(RoutingTensor routing, long firstToken, int tokens) throws IOException {
    LocatedTensor tensor = routing.tensor();
    int topK = Math.toIntExact(tensor.cols());
    int bytes = tensor.dtype().bits() / Byte.SIZE;
    byte[] data = new byte[Math.multiplyExact(tokens, topK * bytes)];
    open(routing.file()).readFully(tensor.offset() + firstToken * topK * bytes, data);
    ByteBuffer ids = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    long[][] experts = new long[tokens][topK];
    for (long[] token : experts) {
      for (int i = 0; i < topK; i++) {
        token[i] = tensor.dtype() == DType.I64 ? ids.getLong() : ids.getInt();
      }
    }

    return experts;
  }

  private FSDataInputStream open(String path) throws IOException {
    if (!path.equals(name)) {
      close();
      Path opened = new Path(path);
      file = RawFileSystem.of(opened, conf).open(opened);
      name = path;
    }

    return file;
  }

  @Override
  public void close() throws IOException {
    name = null;
    if (file != null) {
      file.close();
      file = null;
    }
  }
}
