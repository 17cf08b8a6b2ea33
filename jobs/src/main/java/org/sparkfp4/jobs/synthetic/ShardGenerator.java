package org.sparkfp4.jobs.synthetic;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.util.SerializableConfiguration;

/** The task of {@code synthesize}: makes one shard. An attempt that died is overwritten by the next. */
final class ShardGenerator implements VoidFunction<SyntheticShard> {
  private static final long serialVersionUID = 1L;

  private final String folder;
  private final long seed;
  private final SerializableConfiguration configuration;

  ShardGenerator(String folder, long seed, SerializableConfiguration configuration) {
    this.folder = folder;
    this.seed = seed;
    this.configuration = configuration;
  }

  @Override
  public void call(SyntheticShard shard) throws IOException {
    Path file = new Path(folder, shard.file());
    try (OutputStream out = withoutChecksums(file.getFileSystem(configuration.value())).create(file, true)) {
      out.write(header(shard));
      byte[] buffer = TensorValues.buffer();
      for (SyntheticTensor tensor : shard.tensors()) {
        TensorValues values = new TensorValues(tensor, seed);
        for (long chunk = 0; chunk < values.chunks(); chunk++) {
          out.write(buffer, 0, values.fill(chunk, buffer));
        }
      }
    }
  }

  /** The local file system without the .crc files that Hadoop would lay beside each file. */
  static FileSystem withoutChecksums(FileSystem files) {
    return files instanceof LocalFileSystem local ? local.getRawFileSystem() : files;
  }

  private static byte[] header(SyntheticShard shard) {
    ObjectNode header = JsonNodeFactory.instance.objectNode();
    header.putObject("__metadata__").put("format", "pt");
    long begin = 0;
    for (SyntheticTensor tensor : shard.tensors()) {
      ObjectNode entry = header.putObject(tensor.name()).put("dtype", tensor.dtype().name());
      tensor.shape().forEach(entry.putArray("shape")::add);
      entry.putArray("data_offsets").add(begin).add(begin + tensor.bytes());
      begin += tensor.bytes();
    }

    byte[] json = header.toString().getBytes(StandardCharsets.UTF_8);
    int padded = (json.length + 7) / 8 * 8;
    ByteBuffer bytes = ByteBuffer.allocate(8 + padded).order(ByteOrder.LITTLE_ENDIAN).putLong(padded).put(json);
    while (bytes.hasRemaining()) {
      bytes.put((byte) ' ');
    }

    return bytes.array();
  }
}
