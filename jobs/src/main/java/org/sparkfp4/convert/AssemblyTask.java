package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.sink.SourceFiles;
import org.sparkfp4.sink.SourcePieces;
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
    try (SourceFiles files = source(new SourcePieces());
        StagedFile out = output.file(file.name(), number, attempt)) {
      SourceBytes source = new SourceBytes(files, files, arranger());
      out.write(ByteBuffer.wrap(
          SafetensorsHeader.encode(file.tensors(), FileMetadata.of(file, plan().target(), source))));
      for (ConvertPlan.Part part : plan().parts(number)) {
        copy(new Path(parts(output.staging()), part.name()), file.items().get(part.item()).length(), output, out);
      }

      files.requireUnchanged();
      out.finish(number, plan().fingerprint());
    }
  }

  private static void copy(Path part, long length, Output output, StagedFile out) throws IOException {
    byte[] piece = new byte[PIECE];
    try (FSDataInputStream in = output.storage().fs().open(part)) {
      for (long left = length; left > 0; ) {
        int count = (int) Math.min(PIECE, left);
        in.readFully(piece, 0, count);
        out.write(ByteBuffer.wrap(piece, 0, count));
        left -= count;
      }
    }
  }
}
