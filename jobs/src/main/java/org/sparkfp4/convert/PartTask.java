package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.sink.SourceFiles;
import org.sparkfp4.sink.SourcePieces;
import org.sparkfp4.sink.StagedFile;

/**
 * Writes an item of a file that is put together later: its bytes, and behind them what the file's metadata says of it, so
 * that whoever puts the file together need not read the source.
 */
final class PartTask extends ConvertTask {
  private static final long serialVersionUID = 1L;

  PartTask(Broadcast<ConvertPlan> plan, Broadcast<SerializableConfiguration> conf, TaskSettings settings) {
    super(plan, conf, settings);
  }

  @Override
  void write(int number, Output output, long attempt) throws IOException {
    ConvertPlan.Part part = plan().parts().get(number - plan().files().size());
    SourcePieces pieces = new SourcePieces();
    try (SourceFiles files = source(pieces);
        SourceFiles aside = source(new SourcePieces());
        StagedFile out = output.part(part.name(), number, attempt)) {
      ConvertItem item = plan().files().get(part.file()).items().get(part.item());
      SourceBytes source = new SourceBytes(files, aside, arranger());
      ItemWriter writer = new ItemWriter(source, out::write);
      writer.write(item);
      Map<String, String> metadata = FileMetadata.of(List.of(item), plan().target(), source.unrecorded());
      out.write(ByteBuffer.wrap(JSON.writeValueAsBytes(metadata)));
      files.requireUnchanged();
      aside.requireUnchanged();
      out.finish(number, plan().fingerprint(), pieces.joined(), writer.rounded());
    }
  }
}
