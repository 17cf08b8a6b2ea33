package org.sparkfp4.convert;

import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.HeaderReader;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** Tells in which layout a checkpoint has NVFP4 layers, from its headers alone, whoever wrote it. */
public final class FoundLayout {
  private FoundLayout() {}

  /**
   * The name of the layout; empty where there are no NVFP4 layers. Stacked experts are told by their files' metadata, for
   * which headers are read once more.
   *
   * @throws IllegalArgumentException if metadata says that experts are stacked, and not how
   */
  public static Optional<String> of(Configuration conf, Checkpoint checkpoint) throws IOException {
    Optional<String> stacked = stacked(conf, checkpoint);
    return stacked.isPresent() ? stacked : ofModules(checkpoint);
  }

  /** The layout of stacked experts; empty where none are stacked for a runtime. */
  public static Optional<String> stacked(Configuration conf, Checkpoint checkpoint) throws IOException {
    FileSystem fs = RawFileSystem.of(checkpoint.path(), conf);
    for (SafetensorsHeader header : HeaderReader.read(fs, checkpoint.shards())) {
      for (Map.Entry<String, String> entry : header.metadata().entrySet()) {
        if (entry.getKey().startsWith(StackDescription.KEY)) {
          return Optional.of(StackDescription.parse(entry.getKey(), entry.getValue()).layout());
        }
      }
    }

    return Optional.empty();
  }

  private static Optional<String> ofModules(Checkpoint checkpoint) {
    return Stream.of(ModuleForm.values())
        .filter(form -> checkpoint.tensors().stream().map(LocatedTensor::name).anyMatch(form::isGlobal))
        .map(ModuleForm::layout)
        .findFirst();
  }

  /** Whether NVFP4 layers have scales for activations, by the names of tensors. */
  public static boolean hasInputScales(Checkpoint checkpoint) {
    return checkpoint.tensors().stream().map(LocatedTensor::name).anyMatch(name ->
        name.endsWith("input_scale") || name.endsWith("input_global_scale"));
  }
}
