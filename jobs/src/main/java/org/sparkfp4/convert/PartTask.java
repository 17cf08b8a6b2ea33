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

/**
 * Writes an item of a file that is put together later: its bytes, and behind them what the file's metadata says of it, so
 * that whoever puts the file together need not read the source.
 */
final class PartTask extends ConvertTask {
  private static final long serialVersionUID = 1L;

  PartTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskOutput output,
      KernelChoice kernels) {
    super(plan, conf, output, kernels);
  }

  @Override
  void write(int number, TaskFiles output) throws IOException {
    ConvertPlan.Part part = plan().parts().get(number - plan().files().size());
    SourcePieces pieces = new SourcePieces();
    try (SourceFiles files = source(pieces);
        SourceFiles aside = source(new SourcePieces());
        StagedFile out = output.beginPart(number, part.name())) {
      ConvertItem item = plan().files().get(part.file()).items().get(part.item());
      SourceBytes source = new SourceBytes(files, aside, arranger());
      ItemWriter writer = new ItemWriter(source, out::write);
      writer.write(item);
      out.write(ByteBuffer.wrap(
          FileMetadata.json(FileMetadata.of(List.of(item), plan().target(), source.unrecorded()))));
      files.requireUnchanged();
      aside.requireUnchanged();
      output.finish(out, number, plan().fingerprint(), List.of(), pieces.joined(), writer.rounded());
    }
  }
}
