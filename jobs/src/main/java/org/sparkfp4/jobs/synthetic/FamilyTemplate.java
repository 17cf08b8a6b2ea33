package org.sparkfp4.jobs.synthetic;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.sparkfp4.safetensors.DType;

/**
 * The names, shapes and config.json of a family's checkpoints, from the table templates.json beside this class.
 *
 * <p>Sizes are products such as {@code 2*I} of whole numbers and H (model width), I (expert width), E (experts), V
 * (vocabulary), L (layers) and D (dense layers); {@code /} divides. In config.json an equals sign stands before them. A
 * tensor's text is its sizes and how it is stored ({@link Storage}).
 *
 * @param config config.json
 * @param predicting layers behind the last that predict further tokens
 * @param before tensors before the layers
 * @param layer path of a layer, with {@code {layer}}
 * @param layers tensors of layers, below the path; {@code {expert}} stands for each expert
 * @param after tensors behind the layers
 */
record FamilyTemplate(
    ObjectNode config,
    int predicting,
    Map<String, String> before,
    String layer,
    List<Part> layers,
    Map<String, String> after) {
  private static final ObjectMapper JSON = JsonMapper.builder().build();

  /**
   * Tensors that some layers have.
   *
   * @param of which: {@code all}, {@code dense}, {@code moe} (those that are not dense), {@code even}, {@code odd} or
   *     {@code mtp} (those behind the last)
   */
  record Part(String of, Map<String, String> tensors) {
    boolean isOf(int layer, int dense, int last) {
      return switch (of) {
        case "all" -> true;
        case "dense" -> layer < dense;
        case "moe" -> layer >= dense;
        case "even" -> layer % 2 == 0;
        case "odd" -> layer % 2 == 1;
        case "mtp" -> layer >= last;
        default -> throw new IllegalStateException("Cannot tell which layers are " + of);
      };
    }
  }

  /** The template of a model type. */
  static FamilyTemplate of(String name) {
    try (InputStream table = FamilyTemplate.class.getResourceAsStream("templates.json")) {
      return JSON.treeToValue(JSON.readTree(table).path(name), FamilyTemplate.class);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the template of " + name, e);
    }
  }

  /** The tensors of a model, in the order in which its modules are built. */
  List<SyntheticTensor> tensors(ModelShape shape, int dense, DType dtype) {
    Sizes sizes = new Sizes(shape, dense);
    List<SyntheticTensor> tensors = new ArrayList<>();
    before.forEach((name, text) -> Storage.add(name, text, sizes, dtype, tensors));
    for (int index = 0; index < shape.layers() + predicting; index++) {
      String path = layer.replace("{layer}", Integer.toString(index)) + ".";
      for (Part part : layers) {
        if (part.isOf(index, dense, shape.layers())) {
          addPart(path, part.tensors(), sizes, dtype, tensors);
        }
      }
    }

    after.forEach((name, text) -> Storage.add(name, text, sizes, dtype, tensors));
    return tensors;
  }

  private static void addPart(
      String path, Map<String, String> part, Sizes sizes, DType dtype, List<SyntheticTensor> tensors) {
    part.forEach((name, text) -> {
      if (!name.contains("{expert}")) {
        Storage.add(path + name, text, sizes, dtype, tensors);
      }
    });
    for (int expert = 0; expert < sizes.shape().experts(); expert++) {
      for (Map.Entry<String, String> entry : part.entrySet()) {
        if (entry.getKey().contains("{expert}")) {
          String name = entry.getKey().replace("{expert}", Integer.toString(expert));
          Storage.add(path + name, entry.getValue(), sizes, dtype, tensors);
        }
      }
    }
  }

  /** The config.json of a model. */
  ObjectNode config(ModelShape shape, int dense, DType dtype) {
    ObjectNode filled = (ObjectNode) fill(config, new Sizes(shape, dense));
    filled.put("torch_dtype", dtype == DType.BF16 ? "bfloat16" : dtype == DType.F16 ? "float16" : "float32");
    return filled;
  }

  private static JsonNode fill(JsonNode node, Sizes sizes) {
    JsonNodeFactory nodes = JsonNodeFactory.instance;
    if (node.isTextual() && node.textValue().startsWith("=")) {
      return nodes.numberNode(sizes.value(node.textValue().substring(1)));
    } else if (node.isObject()) {
      ObjectNode object = nodes.objectNode();
      node.properties().forEach(field -> object.set(field.getKey(), fill(field.getValue(), sizes)));
      return object;
    } else if (node.isArray()) {
      ArrayNode array = nodes.arrayNode();
      node.forEach(element -> array.add(fill(element, sizes)));
      return array;
    }

    return node;
  }

  /** The values that sizes of a template stand for. */
  record Sizes(ModelShape shape, int dense) {
    long value(String product) {
      long value = 1;
      boolean divides = false;
      for (String part : product.split("(?<=[*/])|(?=[*/])")) {
        switch (part) {
          case "*" -> divides = false;
          case "/" -> divides = true;
          default -> value = divides ? value / factor(part) : value * factor(part);
        }
      }

      return value;
    }

    private long factor(String text) {
      return switch (text) {
        case "H" -> shape.hidden();
        case "I" -> shape.intermediate();
        case "E" -> shape.experts();
        case "V" -> shape.vocab();
        case "L" -> shape.layers();
        case "D" -> dense;
        default -> Long.parseLong(text);
      };
    }
  }
}
