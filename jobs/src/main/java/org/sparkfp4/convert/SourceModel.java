package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.HeaderReader;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.SafetensorsHeader;

/**
 * A quantized checkpoint by its parts: layers of routed experts, other NVFP4 layers, and all that is neither. Made from
 * names, shapes and metadata alone.
 */
final class SourceModel {
  /** What the keys of metadata begin with that hold the bits of a scalar; the scalar's name follows. */
  static final String BITS = "sparkfp4.bits.";

  private static final Pattern EXPERT =
      Pattern.compile("(.+\\.experts)\\.(\\d{1,6})\\.(gate_proj|up_proj|down_proj|w1|w2|w3)");
  private static final List<List<String>> PROJECTIONS =
      List.of(List.of("gate_proj", "up_proj", "down_proj"), List.of("w1", "w3", "w2"));
  private static final String WEIGHT = ".weight";

  private final JsonNode config;
  private final Map<String, String> files;
  private final Map<String, LocatedTensor> rest = new LinkedHashMap<>();
  private final Map<String, GlobalScale> bits = new HashMap<>();
  private final List<ExpertLayer> layers = new ArrayList<>();
  private final List<QuantizedLinear> linears = new ArrayList<>();
  private ModuleForm form;

  private SourceModel(List<LocatedTensor> tensors, Map<String, String> files, JsonNode config) {
    this.config = config;
    this.files = files;
    tensors.forEach(tensor -> rest.put(tensor.name(), tensor));
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

    Map<String, String> metadata = new TreeMap<>();
    Map<String, String> files = new HashMap<>();
    List<SafetensorsHeader> headers = HeaderReader.read(fs, checkpoint.shards());
    for (int i = 0; i < headers.size(); i++) {
      String file = checkpoint.shards().get(i).getPath().getName();
      metadata.putAll(headers.get(i).metadata());
      headers.get(i).metadata().keySet().forEach(key -> files.put(key, file));
    }

    return of(checkpoint.tensors(), metadata, files, checkpoint.config());
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
    return of(tensors, metadata, Map.of(), config);
  }

  /** {@code files} has for messages the file of each key of the metadata, where it is known. */
  private static SourceModel of(
      List<LocatedTensor> tensors, Map<String, String> metadata, Map<String, String> files, JsonNode config) {
    SourceModel model = new SourceModel(tensors, files, config);
    if (config.path("quantization_config").path("quant_algo").asText().equals("MIXED_PRECISION")
        || config.path("quantization_config").path("format").asText().equals("mixed-precision")) {
      throw new IllegalArgumentException("Cannot convert a checkpoint that keeps other quantized formats beside NVFP4:"
          + " no two layouts describe them alike; quantize the source without --keep-source-precision");
    }

    model.requireOwnMethod();
    metadata.forEach(model::readMetadata);
    metadata.forEach((key, value) -> {
      try {
        model.addStack(key, value);
      } catch (ArithmeticException e) {
        throw new IllegalArgumentException(
            "Invalid metadata " + model.named(key) + ": its sizes are larger than any tensor; convert the checkpoint anew",
            e);
      }
    });
    model.addLinears();
    if (model.layers.isEmpty() && model.linears.isEmpty()) {
      throw new IllegalArgumentException("Cannot convert: the input has no NVFP4 layers of a known layout, neither"
          + " ModelOpt's (weight_scale_2) nor compressed-tensors' (weight_global_scale), nor experts that convert"
          + " stacked; give a checkpoint that quantize or convert made, or one of those producers");
    }

    model.requireWhole();
    return model;
  }

  /** Content of config.json. */
  JsonNode config() {
    return config;
  }

  /** Layers of routed experts, by path. */
  List<ExpertLayer> layers() {
    return layers;
  }

  /** NVFP4 layers that are no routed experts. */
  List<QuantizedLinear> linears() {
    return linears;
  }

  /** Tensors that are no part of an NVFP4 layer. */
  List<LocatedTensor> others() {
    return List.copyOf(rest.values());
  }

  /** Whether activations stay in high precision: no layer has a scale for them. */
  boolean isWeightOnly() {
    return linears.stream().allMatch(linear -> linear.input() == null)
        && layers.stream().noneMatch(layer -> layer.stored().hasInput(0, 0));
  }

  /**
   * The form in which config.json describes the checkpoint; ModelOpt's where it says nothing, as older ones of that
   * producer do.
   */
  ModuleForm describedAs() {
    return ModuleForm.named(method()).orElse(ModuleForm.MODELOPT);
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

    for (String name : rest.keySet()) {
      if (name.endsWith(".k_scale") || name.endsWith(".v_scale")) {
        throw new IllegalArgumentException("Cannot convert to " + other.layout() + ": the source quantizes the KV cache"
            + " (" + name + "), which that layout's configuration has other words for; choose a layout described by "
            + describedAs().layout());
      }
    }
  }

  /** Configurations of other methods would describe an output of whose tensors they say nothing. */
  private void requireOwnMethod() {
    String method = method();
    if (!method.isEmpty() && ModuleForm.named(method).isEmpty()) {
      throw new IllegalArgumentException("Cannot convert: " + Checkpoint.CONFIG + " has quant_method \"" + method
          + "\" in its quantization_config, and NVFP4 checkpoints have modelopt or compressed-tensors; give the config.json"
          + " that belongs to the weights");
    }
  }

  private String method() {
    return config.path("quantization_config").path("quant_method").asText();
  }

  /** A part of a layer without the rest is no tensor to be copied: whoever loads it would take it for the layer. */
  private void requireWhole() {
    if (form != null && !method().isEmpty() && describedAs() != form) {
      throw new IllegalArgumentException("Cannot convert: " + Checkpoint.CONFIG + " has quant_method \"" + method()
          + "\" in its quantization_config, but the tensors are those of " + form.layout()
          + "; give the config.json that belongs to the weights");
    }

    for (LocatedTensor tensor : rest.values()) {
      String name = tensor.name();
      if (name.endsWith(".weight_packed") || name.endsWith(".weight_scale")
          || name.endsWith(WEIGHT) && tensor.dtype() == DType.U8) {
        throw new IllegalArgumentException("Cannot convert " + name + " (" + tensor.file() + "): it is " + tensor.dtype()
            + " " + tensor.shape() + ", a part of a quantized layer, but the layer's other tensors ("
            + "weight_scale_2 of ModelOpt, weight_global_scale of compressed-tensors) are missing, so it is no NVFP4 layer;"
            + " quantize or download the checkpoint again");
      }
    }
  }

  private String named(String key) {
    return key + (files.containsKey(key) ? " in " + files.get(key) : "");
  }

  private void readMetadata(String key, String value) {
    if (key.startsWith(BITS)) {
      try {
        bits.put(key.substring(BITS.length()), GlobalScale.parse(value));
      } catch (IllegalArgumentException e) {
        throw new IllegalArgumentException(
            "Invalid metadata " + named(key) + ": " + e.getMessage() + "; convert the checkpoint anew from its source", e);
      }
    }
  }

  private void addStack(String key, String value) {
    if (!key.startsWith(StackDescription.KEY)) {
      return;
    }

    StackDescription described = StackDescription.parse(named(key), value);
    ExpertLayout layout = ExpertLayout.named(described.layout()).orElseThrow(() -> new IllegalArgumentException(
        "Invalid metadata " + named(key) + ": layout " + described.layout() + " is none of " + ExpertLayout.names()));
    ExpertShape shape = described.shape();
    List<LocatedTensor> tensors = new ArrayList<>();
    List<StackPart> parts = layout.parts();
    for (int i = 0; i < parts.size(); i++) {
      String name = i < described.tensors().size() ? described.tensors().get(i) : "";
      LocatedTensor tensor = rest.remove(name);
      List<Long> expected = layout.shapeOf(shape, parts.get(i));
      if (tensor == null || tensor.dtype() != layout.dtype(parts.get(i)) || !tensor.shape().equals(expected)) {
        throw new IllegalArgumentException("Cannot convert " + key + ": tensor \"" + name + "\" is "
            + (tensor == null ? "missing" : tensor.dtype() + " " + tensor.shape()) + ", layout " + layout.optionName()
            + " has " + layout.dtype(parts.get(i)) + " " + expected + "; convert the checkpoint anew from its source");
      }

      tensors.add(tensor);
    }

    List<List<GlobalScale>> globals =
        described.globals().stream().map(text -> described.scales(named(key), text)).toList();
    if (globals.stream().anyMatch(List::isEmpty)) {
      throw new IllegalArgumentException("Invalid metadata " + named(key) + ": it has no global scales");
    }

    String path = key.substring(StackDescription.KEY.length());
    layers.add(new ExpertLayer(path, described.projections(), shape, bias(path, shape.experts()),
        new StoredExperts.Stack(layout, tensors, globals,
            described.inputs().stream().map(text -> described.scales(named(key), text)).toList())));
  }

  private void addLinears() {
    Map<String, Map<Integer, Map<String, QuantizedLinear>>> experts = new LinkedHashMap<>();
    for (LocatedTensor tensor : List.copyOf(rest.values())) {
      requireUnstacked(tensor);
      for (ModuleForm candidate : ModuleForm.values()) {
        String module = candidate.moduleOf(tensor.name());
        if (module == null) {
          continue;
        }

        if (form != null && form != candidate) {
          throw new IllegalArgumentException("Cannot convert a checkpoint of two layouts: " + tensor.name() + " is of "
              + candidate.layout() + ", others of " + form.layout());
        }

        form = candidate;
        QuantizedLinear linear = linear(candidate, module);
        Matcher expert = EXPERT.matcher(module);
        if (expert.matches()) {
          requireNumber(module, expert.group(2));
          experts.computeIfAbsent(expert.group(1), path -> new TreeMap<>())
              .computeIfAbsent(Integer.valueOf(expert.group(2)), number -> new HashMap<>())
              .put(expert.group(3), linear);
        } else {
          linears.add(linear);
        }
      }
    }

    experts.forEach(this::addExperts);
  }

  /** 01 would be another name for 1, and one of the two experts lost. */
  private static void requireNumber(String module, String number) {
    if (number.length() > 1 && number.startsWith("0")) {
      throw new IllegalArgumentException("Cannot convert " + module + ": the expert's number " + number
          + " has a leading zero, and runtimes look for " + Integer.valueOf(number) + "; rename the expert's tensors");
    }
  }

  private static void requireUnstacked(LocatedTensor tensor) {
    if (tensor.name().endsWith("_weight_scale_2")) {
      throw new IllegalArgumentException("Cannot convert " + tensor.name() + " (" + tensor.file() + "): its experts are"
          + " stacked as ModelOpt does for Llama 4 and gpt-oss, with one scale for all; give a checkpoint whose experts"
          + " are apart");
    }
  }

  private QuantizedLinear linear(ModuleForm of, String module) {
    LocatedTensor global = rest.remove(of.global(module));
    LocatedTensor codes = rest.remove(of.codes(module));
    LocatedTensor scales = rest.remove(of.scales(module));
    LocatedTensor input = rest.remove(of.input(module));
    require(codes, of.codes(module), module, codes != null && codes.dtype() == DType.U8 && codes.shape().size() == 2
        && 2 * codes.cols() % Nvfp4.BLOCK == 0, "U8 [rows, K/2]");
    require(scales, of.scales(module), module, scales != null && scales.dtype() == DType.F8_E4M3
        && scales.shape().equals(List.of(codes.rows(), 2 * codes.cols() / Nvfp4.BLOCK)),
        "F8_E4M3 [rows, K/16], a scale for each 16 codes");
    require(global, of.global(module), module, isScalar(global), "an F32 scalar");
    require(input, of.input(module), module, input == null || isScalar(input), "an F32 scalar");
    ModuleForm other = of == ModuleForm.MODELOPT ? ModuleForm.COMPRESSED_TENSORS : ModuleForm.MODELOPT;
    return new QuantizedLinear(module, of, codes, scales, global, input, bits.get(other.global(module)),
        bits.get(other.input(module)));
  }

  private static boolean isScalar(LocatedTensor tensor) {
    return tensor.dtype() == DType.F32 && tensor.length() == Float.BYTES;
  }

  private static void require(LocatedTensor tensor, String name, String module, boolean fits, String expected) {
    if (!fits) {
      throw new IllegalArgumentException("Cannot convert " + module + ": tensor " + name + " is "
          + (tensor == null ? "missing" : tensor.dtype() + " " + tensor.shape() + " (" + tensor.file() + ")")
          + ", must be " + expected);
    }
  }

  private void addExperts(String path, Map<Integer, Map<String, QuantizedLinear>> byNumber) {
    List<String> names = PROJECTIONS.get(byNumber.values().iterator().next().containsKey("w2") ? 1 : 0);
    boolean gated = byNumber.values().stream().anyMatch(expert -> expert.containsKey(names.get(0)));
    List<String> projections = gated ? names : names.subList(1, names.size());
    byNumber.forEach((number, expert) -> requireKnown(path, number, expert, projections));
    List<List<QuantizedLinear>> experts = new ArrayList<>();
    for (int e = 0; e < count(path, byNumber); e++) {
      List<QuantizedLinear> expert = new ArrayList<>();
      for (String projection : projections) {
        QuantizedLinear linear = byNumber.getOrDefault(e, Map.of()).get(projection);
        if (linear == null) {
          String module = path + "." + e + "." + projection;
          throw new IllegalArgumentException("Cannot convert " + path + ": " + module
              + (rest.containsKey(module + WEIGHT) ? " is not quantized" : " is missing")
              + ", and runtimes take all experts of a layer or none; quantize or download the checkpoint again");
        }

        expert.add(linear);
      }

      experts.add(expert);
    }

    QuantizedLinear up = experts.get(0).get(projections.size() - 2);
    ExpertShape shape = new ExpertShape(gated, experts.size(), up.cols(), up.rows());
    ExpertLayer layer = new ExpertLayer(
        path, projections, shape, bias(path, shape.experts()), new StoredExperts.Modules(experts));
    for (int e = 0; e < experts.size(); e++) {
      requireShape(layer, e, experts.get(e));
    }

    layers.add(layer);
  }

  private static void requireKnown(
      String path, int number, Map<String, QuantizedLinear> expert, List<String> projections) {
    for (String name : new TreeSet<>(expert.keySet())) {
      if (!projections.contains(name)) {
        throw new IllegalArgumentException("Cannot convert " + path + "." + number + "." + name + " ("
            + expert.get(name).codes().file() + "): the layer's experts consist of " + String.join(", ", projections)
            + "; download the checkpoint again, or take that matrix out of it");
      }
    }
  }

  /** As many as config.json says, where it does: those behind the last would not be missed otherwise. */
  private int count(String path, Map<Integer, Map<String, QuantizedLinear>> byNumber) {
    int found = byNumber.keySet().stream().mapToInt(Integer::intValue).max().orElseThrow() + 1;
    for (JsonNode level : List.of(config.path("text_config"), config)) {
      for (String key : List.of("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")) {
        JsonNode number = level.path(key);
        if (number.isIntegralNumber()) {
          if (number.asLong() < found) {
            throw new IllegalArgumentException("Cannot convert " + path + ": it has an expert " + (found - 1)
                + ", but config.json has " + key + " " + number.asLong());
          }

          return Math.toIntExact(Math.min(number.asLong(), found + 1L));
        }
      }
    }

    return found;
  }

  private static void requireShape(ExpertLayer layer, int expert, List<QuantizedLinear> linears) {
    List<LinearShape> expected = layer.modules(expert);
    for (int p = 0; p < linears.size(); p++) {
      QuantizedLinear linear = linears.get(p);
      if (linear.rows() != expected.get(p).rows() || linear.cols() != expected.get(p).cols()) {
        throw new IllegalArgumentException("Cannot convert " + linear.module() + ": it is [" + linear.rows() + ", "
            + linear.cols() + "], beside the other experts it must be [" + expected.get(p).rows() + ", "
            + expected.get(p).cols() + "]");
      }

      if (layer.stored().hasInput(expert, p) != layer.stored().hasInput(0, p)) {
        throw new IllegalArgumentException("Cannot convert " + linear.module() + ": some experts of the layer have a"
            + " scale for activations and others none; quantize the checkpoint again");
      }
    }
  }

  private LocatedTensor bias(String path, int experts) {
    String block = path.substring(0, Math.max(0, path.lastIndexOf('.')));
    for (String name : List.of(".gate.e_score_correction_bias", ".e_score_correction_bias",
        ".router.e_score_correction_bias")) {
      LocatedTensor bias = rest.get(block + name);
      if (bias != null && bias.shape().equals(List.of((long) experts))
          && List.of(DType.F32, DType.BF16, DType.F16).contains(bias.dtype())) {
        return bias;
      }
    }

    return null;
  }
}
