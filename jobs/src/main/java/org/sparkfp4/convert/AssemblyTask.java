package org.sparkfp4.convert;

import com.fasterxml.jackson.core.type.TypeReference;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.sink.StagedFile;

/** Puts the parts of a file together behind its header. */
final class AssemblyTask extends ConvertTask {
  private static final long serialVersionUID = 1L;
  private static final int PIECE = 1 << 20;

  AssemblyTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskSettings settings) {
    super(plan, conf, settings);
  }

  @Override
  void write(int number, Output output, long attempt) throws IOException {
    ConvertFile file = plan().files().get(number);
    Map<String, String> metadata = new TreeMap<>();
    for (ConvertPlan.Part part : plan().parts(number)) {
      metadata.putAll(metadata(place(part, output), length(part), output.storage().fs()));
    }

    try (StagedFile out = output.file(file.name(), number, attempt)) {
      out.write(ByteBuffer.wrap(SafetensorsHeader.encode(file.tensors(), metadata)));
      for (ConvertPlan.Part part : plan().parts(number)) {
        copy(place(part, output), length(part), output.storage().fs(), out);
      }

      out.finish(number, plan().fingerprint());
    }
  }

  private static Path place(ConvertPlan.Part part, Output output) {
    return new Path(parts(output.staging()), part.name());
  }

  private long length(ConvertPlan.Part part) {
    return plan().files().get(part.file()).items().get(part.item()).length();
  }

  /** What stands behind the bytes of a part. */
  private static Map<String, String> metadata(Path part, long length, FileSystem fs) throws IOException {
    try (FSDataInputStream in = fs.open(part)) {
      in.seek(length);
      return JSON.readValue((InputStream) in, new TypeReference<>() {});
    }
  }

  private static void copy(Path part, long length, FileSystem fs, StagedFile out) throws IOException {
    byte[] piece = new byte[PIECE];
    try (FSDataInputStream in = fs.open(part)) {
      for (long left = length; left > 0; ) {
        int count = (int) Math.min(PIECE, left);
        in.readFully(piece, 0, count);
        out.write(ByteBuffer.wrap(piece, 0, count));
        left -= count;
      }
    }
  }
}
