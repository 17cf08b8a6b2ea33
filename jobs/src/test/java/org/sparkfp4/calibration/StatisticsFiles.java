package org.sparkfp4.calibration;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;

/** A folder of statistics, all its tensors read. */
final class StatisticsFiles {
  private final Map<String, StoredTensor> tensors = new HashMap<>();
  private final StatisticsIndex index;

  StatisticsFiles(Path folder) throws IOException {
    index = Statistics.open(new Configuration(), new org.apache.hadoop.fs.Path(folder.toString())).index();
    for (StatisticsIndex.StatisticsFile file : index.files()) {
      tensors.putAll(CheckpointFiles.read(folder.resolve(file.name())));
    }
  }

  StatisticsIndex index() {
    return index;
  }

  boolean has(String module, String name) {
    return tensors.containsKey(Statistics.tensor(module, name));
  }

  StoredTensor tensor(String module, String name) {
    return tensors.get(Statistics.tensor(module, name));
  }

  float[] floats(String module, String name) {
    ByteBuffer bytes = bytes(module, name);
    float[] values = new float[bytes.capacity() / Float.BYTES];
    bytes.asFloatBuffer().get(values);
    return values;
  }

  double[] doubles(String module, String name) {
    ByteBuffer bytes = bytes(module, name);
    double[] values = new double[bytes.capacity() / Double.BYTES];
    bytes.asDoubleBuffer().get(values);
    return values;
  }

  long[] longs(String module, String name) {
    ByteBuffer bytes = bytes(module, name);
    long[] values = new long[bytes.capacity() / Long.BYTES];
    bytes.asLongBuffer().get(values);
    return values;
  }

  private ByteBuffer bytes(String module, String name) {
    return ByteBuffer.wrap(tensor(module, name).data()).order(ByteOrder.LITTLE_ENDIAN);
  }
}
