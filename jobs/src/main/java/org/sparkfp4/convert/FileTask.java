package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.sink.SourceFiles;
import org.sparkfp4.sink.SourcePieces;
import org.sparkfp4.sink.StagedFile;

/** Writes a file front to back. */
final class FileTask extends ConvertTask {
  private static final long serialVersionUID = 1L;

  FileTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskSettings settings) {
    super(plan, conf, settings);
  }

  @Override
  void write(int number, Output output, long attempt) throws IOException {
    ConvertFile file = plan().files().get(number);
    SourcePieces pieces = new SourcePieces();
    try (SourceFiles files = source(pieces);
        SourceFiles aside = source(new SourcePieces());
        StagedFile out = output.file(file.name(), number, attempt)) {
      SourceBytes source = new SourceBytes(files, aside, arranger());
      out.write(ByteBuffer.wrap(SafetensorsHeader.encode(
          file.tensors(), FileMetadata.of(file.items(), plan().target(), source.unrecorded()))));
      ItemWriter writer = new ItemWriter(source, out::write);
      for (ConvertItem item : file.items()) {
        writer.write(item);
      }

      files.requireUnchanged();
      aside.requireUnchanged();
      out.finish(number, plan().fingerprint(), pieces.joined(), writer.rounded());
    }
  }
}
