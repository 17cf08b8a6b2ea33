package org.sparkfp4.convert;

import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.HeaderReader;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;

/**
 * How a checkpoint has NVFP4 layers, as its headers alone tell, whoever wrote it.
 *
 * @param name of the layout
 * @param weightOnly whether no layer has a scale for activations
 */
public record FoundLayout(String name, boolean weightOnly) {
  /**
   * The layout; empty where there are no NVFP4 layers. Where codes may be among the tensors, headers are read once more,
   * for their metadata.
   *
   * @throws IllegalArgumentException if metadata says that experts are stacked, and not how
   */
  public static Optional<FoundLayout> of(Configuration conf, Checkpoint checkpoint) throws IOException {
    Optional<FoundLayout> stacked = stacked(conf, checkpoint);
    return stacked.isPresent() ? stacked : ofModules(checkpoint);
  }

  /** The layout of stacked experts; empty where none are stacked for a runtime. */
  public static Optional<FoundLayout> stacked(Configuration conf, Checkpoint checkpoint) throws IOException {
    Set<DType> codes =
        Stream.of(ExpertLayout.values()).map(layout -> layout.dtype(StackPart.FC1_CODES)).collect(Collectors.toSet());
    if (checkpoint.tensors().stream().noneMatch(tensor -> codes.contains(tensor.dtype()))) {
      return Optional.empty();
    }

    FileSystem fs = RawFileSystem.of(checkpoint.path(), conf);
    for (SafetensorsHeader header : HeaderReader.read(fs, checkpoint.shards())) {
      for (Map.Entry<String, String> entry : header.metadata().entrySet()) {
        if (entry.getKey().startsWith(StackDescription.KEY)) {
          StackDescription stack = StackDescription.parse(entry.getKey(), entry.getValue());
          return Optional.of(new FoundLayout(stack.layout(), stack.inputs().stream().allMatch(String::isEmpty)));
        }
      }
    }

    return Optional.empty();
  }

  private static Optional<FoundLayout> ofModules(Checkpoint checkpoint) {
    return Stream.of(ModuleForm.values())
        .filter(form -> checkpoint.tensors().stream().map(LocatedTensor::name).anyMatch(form::isGlobal))
        .map(form -> new FoundLayout(
            form.layout(), checkpoint.tensors().stream().map(LocatedTensor::name).noneMatch(form::isInput)))
        .findFirst();
  }
}
