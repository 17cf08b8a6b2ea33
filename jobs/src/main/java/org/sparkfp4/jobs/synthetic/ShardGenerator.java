package org.sparkfp4.jobs.synthetic;

import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.function.VoidFunction;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

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
    try (OutputStream out = RawFileSystem.of(file, configuration.value()).create(file, true)) {
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

  private static byte[] header(SyntheticShard shard) {
    List<TensorInfo> infos = new ArrayList<>();
    long begin = 0;
    for (SyntheticTensor tensor : shard.tensors()) {
      infos.add(new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), begin, begin + tensor.bytes()));
      begin += tensor.bytes();
    }

    return SafetensorsHeader.encode(infos, SafetensorsHeader.FORMAT_PT);
  }
}
