package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
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
    Map<String, String> metadata = new TreeMap<>();
    for (ConvertPlan.Part part : plan().parts(number)) {
      byte[] behind = output.restOfPart(part.name(), length(file, part));
      metadata.putAll(FileMetadata.parse(behind));
    }

    try (StagedFile out = output.begin(number, file.name())) {
      out.write(ByteBuffer.wrap(SafetensorsHeader.encode(file.tensors(), metadata)));
      for (ConvertPlan.Part part : plan().parts(number)) {
        output.readPart(part.name(), length(file, part), out::write);
      }

      output.finish(out, number, plan().fingerprint());
    }
  }

  private static long length(ConvertFile file, ConvertPlan.Part part) {
    return file.items().get(part.item()).length();
  }
}
