package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.WeightScheme;

/** What a config.json says of how the weights are stored. */
public final class SourceQuantization {
  /** What is read, and that it is wanted, for messages. */
  static final String SOURCES = "sources are read in BF16, F16 and F32, in FP8 and MXFP8 (E4M3), in symmetric INT4 and"
      + " in MXFP4: give one of those";

  /** Elements of a scale of MXFP4 and MXFP8, by OCP Microscaling Formats 1.0. */
  private static final int MX_GROUP = 32;

  private final JsonNode config;
  private boolean powerOfTwoScales;
  private final List<Blocks> blocks = new ArrayList<>();
  private final Map<Blocks, List<JsonNode>> groups = new HashMap<>();

  /**
   * A granularity that the config allows: codes of one scale are {@code rows x cols} of a matrix, 0 meaning all.
   */
  record Blocks(CodeType codes, long rows, long cols) {}

  private SourceQuantization(ModelConfig model) {
    this.config = model.quantization();
    this.powerOfTwoScales = config.path("scale_fmt").asText().equals("ue8m0");
    if (!config.isObject()) {
      // what a scale's shape alone tells
      anyGranularity();
      return;
    }

    String method = config.path("quant_method").asText().toLowerCase(Locale.ROOT);
    switch (method) {
      case "fp8" -> addFp8(model);
      case "mxfp4" -> add(CodeType.E2M1, 1, MX_GROUP);
      case "mxfp8" -> addMxfp8();
      case "modelopt" -> addModelOpt();
      case "compressed-tensors" -> config.path("config_groups").forEach(this::addGroup);
      default -> { }
    }

    if (blocks.isEmpty()) {
      throw unread();
    }
  }

  /**
   * What the config says.
   *
   * @throws IllegalArgumentException if that is a format which is not read, NVFP4 itself among them
   */
  public static SourceQuantization of(ModelConfig model) {
    return new SourceQuantization(model);
  }

  /** Whether there is a quantization_config at all. */
  boolean isPresent() {
    return config.isObject();
  }

  /** Granularities that the config allows for codes of a type, the finest last. */
  List<Blocks> blocks(CodeType codes) {
    return blocks.stream().filter(each -> each.codes() == codes).toList();
  }

  /** The types of codes that weights must have by the config. */
  List<CodeType> codes() {
    return blocks.stream().map(Blocks::codes).distinct().toList();
  }

  /** The config_groups of compressed-tensors that say of weights that they are stored in such a way. */
  public List<JsonNode> groups(WeightScheme scheme) {
    return groups.getOrDefault(new Blocks(scheme.codes(), scheme.blockRows(), scheme.blockCols()), List.of());
  }

  /** Whether bytes that are scales are powers of two. */
  boolean powerOfTwoScales() {
    return powerOfTwoScales;
  }

  /** The config in a few words, for messages. */
  String text() {
    if (!isPresent()) {
      return "config.json has no quantization_config";
    }

    StringBuilder text = new StringBuilder("quantization_config of config.json says ");
    String separator = "";
    for (String key : List.of("quant_method", "quant_algo", "format", "fmt", "bits", "weight_block_size")) {
      if (config.has(key)) {
        text.append(separator).append(key).append(' ').append(config.get(key));
        separator = ", ";
      }
    }

    return separator.isEmpty() ? text.append(config).toString() : text.toString();
  }

  private void addFp8(ModelConfig model) {
    JsonNode size = config.path("weight_block_size");
    if (size.size() == 2) {
      add(CodeType.E4M3, positive(size.get(0)), positive(size.get(1)));
    } else if (size.isMissingNode() || size.isNull()) {
      anyGranularity();
    } else {
      throw new IllegalArgumentException("Invalid config.json: weight_block_size of quantization_config is " + size
          + ", must be two whole numbers such as [128, 128]");
    }

    if (model.text("expert_dtype").equals("fp4")) {
      add(CodeType.E2M1, 1, MX_GROUP);
    }
  }

  /** Its scales are powers of two, whatever the dtype of the bytes. */
  private void addMxfp8() {
    JsonNode size = config.path("weight_block_size");
    if (!size.isMissingNode() && !size.isNull()
        && !(size.size() == 2 && size.get(0).asLong() == 1 && size.get(1).asLong() == MX_GROUP)) {
      throw new IllegalArgumentException("Invalid config.json: weight_block_size of quantization_config is " + size
          + ", but blocks of MXFP8 are [1, 32]; take config.json from the checkpoint of the weights");
    }

    powerOfTwoScales = true;
    add(CodeType.E4M3, 1, MX_GROUP);
  }

  private void addModelOpt() {
    String algorithm = config.path("quant_algo").asText();
    if (algorithm.equals("MXFP8")) {
      addMxfp8();
    } else if (algorithm.equals("FP8") || algorithm.equals("FP8_PER_CHANNEL_PER_TOKEN")) {
      anyGranularity();
    }
  }

  private void anyGranularity() {
    add(CodeType.E4M3, 0, 0);
    add(CodeType.E4M3, 1, 0);
  }

  private void addGroup(JsonNode group) {
    JsonNode weights = group.path("weights");
    if (!weights.isObject()) {
      return;
    }

    int bits = weights.path("num_bits").asInt();
    String type = weights.path("type").asText();
    long size = weights.path("group_size").asLong();
    if (bits == 8 && type.equals("float")) {
      powerOfTwoScales |= group.path("format").asText(config.path("format").asText()).equals("mxfp8-quantized");
      addStrategy(CodeType.E4M3, group, size);
    } else if (bits == 4 && type.equals("int")) {
      if (!weights.path("symmetric").asBoolean(true)) {
        throw new IllegalArgumentException("Cannot read INT4 weights with zero points: " + text()
            + " and symmetric false; give a symmetric or an unquantized source");
      }

      addStrategy(CodeType.INT4, group, size);
    } else if (bits == 4 && type.equals("float") && size == MX_GROUP) {
      add(CodeType.E2M1, 1, MX_GROUP, group);
    } else {
      throw unread();
    }
  }

  private void addStrategy(CodeType codes, JsonNode group, long groupSize) {
    JsonNode weights = group.path("weights");
    String strategy = weights.path("strategy").asText(groupSize > 0 ? "group" : "tensor");
    switch (strategy) {
      case "tensor" -> add(codes, 0, 0, group);
      case "channel" -> add(codes, 1, 0, group);
      case "group" -> add(codes, 1, positive(weights.path("group_size")), group);
      case "block" -> {
        JsonNode size = weights.path("block_structure");
        String[] parts = size.asText().split("x");
        if (size.size() == 2) {
          add(codes, positive(size.get(0)), positive(size.get(1)), group);
        } else if (parts.length == 2 && size.asText().matches("[1-9]\\d{0,8}x[1-9]\\d{0,8}")) {
          add(codes, Long.parseLong(parts[0]), Long.parseLong(parts[1]), group);
        } else {
          throw new IllegalArgumentException("Invalid config.json: block_structure of quantization_config is " + size
              + ", must be two whole numbers such as [128, 128]");
        }
      }
      default -> throw unread();
    }
  }

  private static long positive(JsonNode value) {
    if (!value.isIntegralNumber() || value.asLong() <= 0) {
      throw new IllegalArgumentException(
          "Invalid config.json: a block of quantization_config has the size " + value + ", must be positive");
    }

    return value.asLong();
  }

  private void add(CodeType codes, long rows, long cols, JsonNode group) {
    add(codes, rows, cols);
    groups.computeIfAbsent(new Blocks(codes, rows, cols), key -> new ArrayList<>()).add(group);
  }

  private void add(CodeType codes, long rows, long cols) {
    Blocks added = new Blocks(codes, rows, cols);
    if (!blocks.contains(added)) {
      blocks.add(added);
    }
  }

  private IllegalArgumentException unread() {
    return new IllegalArgumentException("Cannot quantize a checkpoint that is quantized already: " + text()
        + "; " + SOURCES);
  }
}
