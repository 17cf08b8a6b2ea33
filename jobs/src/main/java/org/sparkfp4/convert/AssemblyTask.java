package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Puts the parts of a file together behind its header. */
final class AssemblyTask extends ConvertTask {
  private static final long serialVersionUID = 1L;

  AssemblyTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output,
      KernelChoice kernels) {
    super(plan, conf, output, kernels);
  }

  @Override
  void write(int number, TaskFiles output) throws IOException {
    ConvertFile file = plan().files().get(number);
    try (SourceFiles files = source(new SourcePieces());
        StagedFile out = output.begin(number, file.name())) {
      SourceBytes source = new SourceBytes(files, files, arranger());
      out.write(ByteBuffer.wrap(
          SafetensorsHeader.encode(file.tensors(), FileMetadata.of(file, plan().target(), source))));
      for (ConvertPlan.Part part : plan().parts(number)) {
        output.readPart(part.name(), file.items().get(part.item()).length(), out::write);
      }

      files.requireUnchanged();
      output.finish(out, number, plan().fingerprint());
    }
  }
}
