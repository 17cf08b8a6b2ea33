package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.safetensors.DType;

/**
 * A quantized checkpoint by its parts: layers of routed experts, other NVFP4 layers, and all that is neither. Made from
 * names, shapes and metadata alone.
 */
final class SourceModel {
  private final SourceConfig config;
  private final List<ExpertLayer> layers;
  private final List<QuantizedLinear> linears;
  private final List<LocatedTensor> others;

  private SourceModel(
      SourceConfig config, List<ExpertLayer> layers, List<QuantizedLinear> linears, List<LocatedTensor> others) {
    this.config = config;
    this.layers = List.copyOf(layers);
    this.linears = List.copyOf(linears);
    this.others = others;
  }

  /** The parts of a checkpoint; headers are read once more for their metadata. */
  static SourceModel of(Configuration conf, Checkpoint checkpoint) throws IOException {
    FileSystem fs = RawFileSystem.of(checkpoint.path(), conf);
    if (!checkpoint.config().isObject()) {
      if (checkpoint.config().isMissingNode() && fs.exists(new Path(checkpoint.path(), Checkpoint.CONFIG))) {
        throw new IllegalArgumentException("Cannot convert one file of " + checkpoint.path() + ": the output is described"
            + " by the folder's " + Checkpoint.CONFIG + ", which is that of all its weights; give the folder");
      }

      throw new IllegalArgumentException("Cannot convert " + checkpoint.path() + ": it has no " + Checkpoint.CONFIG
          + ", which describes the output too; give a folder that has one beside the weights");
    }

    return of(checkpoint.path().toString(), checkpoint.tensors(), SourceMetadata.read(fs, checkpoint.shards()),
        new SourceConfig(checkpoint.config()));
  }

  /**
   * The parts of a checkpoint.
   *
   * @param tensors all of it
   * @param metadata of its files
   * @param config content of its config.json
   * @throws IllegalArgumentException if it is in no known layout, or a layer is incomplete or of another format
   */
  static SourceModel of(List<LocatedTensor> tensors, Map<String, String> metadata, JsonNode config) {
    return of("the input", tensors, new SourceMetadata(metadata, Map.of()), new SourceConfig(config));
  }

  /** {@code name} is what messages call it. */
  private static SourceModel of(
      String name, List<LocatedTensor> tensors, SourceMetadata metadata, SourceConfig config) {
    config.requireConvertible();
    UnclaimedTensors unclaimed = new UnclaimedTensors(tensors);
    ModuleFinder modules = new ModuleFinder(unclaimed, metadata.origins());
    List<ExpertLayer> layers = new ArrayList<>(new StackFinder(unclaimed, metadata).find());
    modules.find();
    modules.experts().forEach(experts -> layers.add(experts.layer(unclaimed, config)));
    if (layers.isEmpty() && modules.linears().isEmpty()) {
      throw new IllegalArgumentException("Cannot convert " + name + ": it has no NVFP4 layers of a known layout,"
          + " neither ModelOpt's (weight_scale_2) nor compressed-tensors' (weight_global_scale), nor experts that"
          + " convert stacked; give a checkpoint that quantize or convert made, or one of those producers");
    }

    if (modules.form() != null) {
      config.requireForm(modules.form());
    }

    List<LocatedTensor> others = unclaimed.list();
    others.forEach(SourceModel::requireNoPart);
    return new SourceModel(config, layers, modules.linears(), others);
  }

  /** A part of a layer without the rest is no tensor to be copied: whoever loads it would take it for the layer. */
  private static void requireNoPart(LocatedTensor tensor) {
    String name = tensor.name();
    if (name.endsWith(".weight_packed") || name.endsWith(".weight_scale")
        || name.endsWith(".weight") && tensor.dtype() == DType.U8) {
      throw new IllegalArgumentException("Cannot convert " + name + " (" + tensor.file() + "): it is " + tensor.dtype()
          + " " + tensor.shape() + ", a part of a quantized layer, but the layer's other tensors ("
          + "weight_scale_2 of ModelOpt, weight_global_scale of compressed-tensors) are missing, so it is no NVFP4 layer;"
          + " quantize or download the checkpoint again");
    }
  }

  /** Content of config.json. */
  JsonNode config() {
    return config.json();
  }

  /** Layers of routed experts: those that are stacked, by path, then the others in the checkpoint's order. */
  List<ExpertLayer> layers() {
    return layers;
  }

  /** NVFP4 layers that are no routed experts. */
  List<QuantizedLinear> linears() {
    return linears;
  }

  /** Tensors that are no part of an NVFP4 layer. */
  List<LocatedTensor> others() {
    return others;
  }

  /** Whether activations stay in high precision: no layer has a scale for them. */
  boolean isWeightOnly() {
    return linears.stream().allMatch(linear -> linear.input() == null)
        && layers.stream().noneMatch(layer -> layer.stored().hasInput(0, 0));
  }

  /** The form in which config.json describes the checkpoint. */
  ModuleForm describedAs() {
    return config.form();
  }

  /**
   * Requires that the checkpoint can be described in another form than its own.
   *
   * @throws IllegalArgumentException if it has what only its own has words for
   */
  void requireDescribableAs(ModuleForm other) {
    if (describedAs() == other) {
      return;
    }

    for (LocatedTensor tensor : others) {
      if (tensor.name().endsWith(".k_scale") || tensor.name().endsWith(".v_scale")) {
        throw new IllegalArgumentException("Cannot convert to " + other.layout() + ": the source quantizes the KV cache"
            + " (" + tensor.name() + "), which that layout's configuration has other words for; choose a layout described"
            + " by " + describedAs().layout());
      }
    }
  }
}
