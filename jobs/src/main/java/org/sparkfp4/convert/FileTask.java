package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Writes a file front to back. */
final class FileTask extends ConvertTask {
  private static final long serialVersionUID = 1L;

  FileTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output,
      KernelChoice kernels) {
    super(plan, conf, output, kernels);
  }

  @Override
  void write(int number, TaskFiles output) throws IOException {
    ConvertFile file = plan().files().get(number);
    SourcePieces pieces = new SourcePieces();
    try (SourceFiles files = source(pieces);
        SourceFiles aside = source(new SourcePieces());
        StagedFile out = output.begin(number, file.name())) {
      SourceBytes source = new SourceBytes(files, aside, arranger());
      out.write(ByteBuffer.wrap(SafetensorsHeader.encode(
          file.tensors(), FileMetadata.of(file.items(), plan().target(), source.unrecorded()))));
      ItemWriter writer = new ItemWriter(source, out::write);
      for (ConvertItem item : file.items()) {
        writer.write(item);
      }

      files.requireUnchanged();
      aside.requireUnchanged();
      output.finish(out, number, plan().fingerprint(), List.of(), pieces.joined(), writer.rounded());
    }
  }
}
