package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.SourceQuantization;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.KeptFormat;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.safetensors.DType;

/**
 * What compressed-tensors can say of weights that stay as a source stores them: a config group a format, and the names
 * that its loaders have for codes and scales. A source of its own says it in the words of its own groups.
 */
final class KeptGroups {
  private static final long FP8_BLOCK = 128;
  private static final String WEIGHT = "weight";
  private static final String PACKED = "weight_packed";
  private static final String SCALE = "weight_scale";
  private static final String SHAPE = "weight_shape";
  private static final String INPUT_SCALE = "input_scale";

  private final JsonNode config;
  private final SourceQuantization quantization;

  /** For the weights of a source with such a config.json. */
  KeptGroups(ModelConfig source) {
    this.config = source.quantization();
    this.quantization = SourceQuantization.of(source);
  }

  /** See {@link Layout#carry}. */
  List<CarriedTensor> carry(StoredWeight weight, StoredParts parts) {
    WeightScheme scheme = weight.scheme();
    KeptWeight kept = new KeptWeight(weight, parts);
    kept.require(parts.codes().shape().size() == 2, "it is no matrix of one layer");
    return switch (scheme.codes()) {
      case E4M3 -> fp8(kept, parts, scheme);
      case INT4 -> {
        group(kept, scheme);
        LocatedTensor shape = parts.other(SHAPE).orElse(null);
        kept.require(shape != null, "it has no weight_shape, which loaders of packed INT4 ask for");
        yield List.of(
            kept.codes(PACKED), kept.scale(SCALE, scaleShape(kept)), kept.part(shape, SHAPE, shape.shape()));
      }
      case E2M1 -> {
        group(kept, scheme);
        kept.require(
            parts.codes().dtype() == DType.U8 && parts.scale().dtype() == DType.U8,
            "compressed-tensors has MXFP4 as U8 codes and U8 scales, this is " + parts.codes().dtype() + " and "
                + parts.scale().dtype());
        yield List.of(kept.codes(PACKED), kept.scale(SCALE, scaleShape(kept)));
      }
    };
  }

  private List<CarriedTensor> fp8(KeptWeight kept, StoredParts parts, WeightScheme scheme) {
    kept.require(
        scheme.scales() != ScaleType.E8M0,
        "layout compressed-tensors keeps no FP8 with E8M0 scales; layout modelopt keeps MXFP8");
    kept.require(
        !isBlocks(scheme) || (scheme.blockRows() == FP8_BLOCK && scheme.blockCols() == FP8_BLOCK),
        "runtimes have FP8 of compressed-tensors with a scale a tensor, a row or a block of 128 x 128");
    Optional<LocatedTensor> inputScale = parts.other(INPUT_SCALE);
    List<CarriedTensor> tensors = new ArrayList<>(List.of(kept.codes(WEIGHT), kept.scale(SCALE, scaleShape(kept))));
    if (isStatic(kept, scheme, inputScale.isPresent())) {
      kept.require(inputScale.isPresent(), "its activations have a static scale by config.json, but it has no "
          + INPUT_SCALE);
      kept.require(!isBlocks(scheme), "activations of FP8 in blocks have no static scale");
      kept.require(inputScale.get().rows() * inputScale.get().cols() == 1, "its input_scale is no scalar");
      tensors.add(kept.part(inputScale.get(), INPUT_SCALE, List.of(1L)));
    }

    return tensors;
  }

  private boolean isStatic(KeptWeight kept, WeightScheme scheme, boolean hasInputScale) {
    JsonNode group = group(kept, scheme);
    if (group != null) {
      return group.path("input_activations").isObject() && !isDynamic(group.path("input_activations"));
    }

    String activations = config.path("activation_scheme").asText();
    return activations.equals("static") || (hasInputScale && !activations.equals("dynamic"));
  }

  private static boolean isDynamic(JsonNode activations) {
    return activations.path("dynamic").isTextual() || activations.path("dynamic").asBoolean();
  }

  private static boolean isBlocks(WeightScheme scheme) {
    return scheme.blockCols() > 0;
  }

  /** As loaders have it: a scalar is a vector of one. */
  private static List<Long> scaleShape(KeptWeight kept) {
    WeightScheme scheme = kept.weight().scheme();
    LocatedTensor weight = kept.weight().weight();
    return scheme.blockRows() == 0 && scheme.blockCols() == 0
        ? List.of(1L)
        : List.of(scheme.scaleRows(weight.rows()), scheme.scaleCols(weight.cols()));
  }

  /** The source's own group for a weight, or null for FP8 of a source that has no groups. */
  private JsonNode group(KeptWeight kept, WeightScheme scheme) {
    Set<JsonNode> said = new LinkedHashSet<>();
    quantization.groups(scheme).forEach(group -> said.add(arguments(group)));
    kept.require(said.size() <= 1, "config_groups of config.json describe such weights in " + said.size() + " ways");
    kept.require(
        said.size() == 1 || scheme.codes() == CodeType.E4M3,
        "config.json does not describe it as compressed-tensors do");
    return said.isEmpty() ? null : said.iterator().next();
  }

  /** What a group says of its weights, whichever they are. */
  private ObjectNode arguments(JsonNode group) {
    ObjectNode arguments = ConfigJson.object();
    String format = group.path("format").asText(config.path("format").asText());
    arguments.put("format", format);
    arguments.set("weights", group.path("weights"));
    JsonNode activations = group.path("input_activations");
    arguments.set("input_activations", activations.isObject() ? activations : arguments.nullNode());
    return arguments.putNull("output_activations");
  }

  /** The config group of a format, without its targets. */
  ObjectNode group(KeptFormat format) {
    WeightScheme scheme = WeightScheme.parse(format.scheme());
    List<JsonNode> groups = quantization.groups(scheme);
    return groups.isEmpty() ? fp8Group(scheme, format.staticActivations()) : arguments(groups.get(0)).deepCopy();
  }

  private static ObjectNode fp8Group(WeightScheme scheme, boolean staticActivations) {
    ObjectNode group = ConfigJson.object().put("format", "float-quantized");
    ObjectNode weights = fp8(strategy(scheme)).put("dynamic", false);
    ObjectNode activations = fp8(isBlocks(scheme) ? "group" : staticActivations ? "tensor" : "token");
    if (isBlocks(scheme)) {
      weights.putArray("block_structure").add(FP8_BLOCK).add(FP8_BLOCK);
      activations.put("group_size", FP8_BLOCK);
    }

    group.set("weights", weights);
    group.set("input_activations", activations.put("dynamic", !staticActivations));
    return group.putNull("output_activations");
  }

  private static String strategy(WeightScheme scheme) {
    return isBlocks(scheme) ? "block" : scheme.blockRows() == 0 ? "tensor" : "channel";
  }

  private static ObjectNode fp8(String strategy) {
    return ConfigJson.object().put("num_bits", 8).put("type", "float").put("symmetric", true).put("strategy", strategy);
  }
}
