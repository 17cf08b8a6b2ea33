package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;

/** The model families that are known, read from the table families.json beside this class. */
public final class ModelFamilies {
  private static final ObjectMapper JSON = JsonMapper.builder()
      .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
      .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
      .build();

  private final List<ModelFamily> families;

  private ModelFamilies(List<ModelFamily> families) {
    this.families = families;
  }

  /** The families that come with the product. */
  public static ModelFamilies builtIn() {
    try (InputStream table = ModelFamilies.class.getResourceAsStream("families.json")) {
      return read(table);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the table of model families", e);
    }
  }

  static ModelFamilies read(InputStream json) throws IOException {
    Table table = JSON.readValue(json, Table.class);
    return new ModelFamilies(table.families().stream().map(entry -> entry.resolve(table.blocks())).toList());
  }

  /**
   * The family of a checkpoint: that of its model_type, else that of its architectures.
   *
   * @throws IllegalArgumentException if no family is that of the config; the message lists the known model types
   */
  public ModelFamily of(ModelConfig config) {
    ModelFamily family = find(config.modelTypes(), ModelFamily::modelTypes);
    if (family == null) {
      family = find(config.architectures(), ModelFamily::architectures);
    }

    if (family == null) {
      TreeSet<String> known = new TreeSet<>();
      families.forEach(each -> known.addAll(each.modelTypes()));
      throw new IllegalArgumentException("Cannot tell the model family: config.json has model_type "
          + config.modelTypes() + " and architectures " + config.architectures() + "; known model types are "
          + String.join(", ", known));
    }

    return family;
  }

  private ModelFamily find(List<String> wanted, Function<ModelFamily, List<String>> offered) {
    for (String name : wanted) {
      for (ModelFamily family : families) {
        if (offered.apply(family).contains(name)) {
          return family;
        }
      }
    }

    return null;
  }

  /** The file: blocks by name, and the families that are made of them. */
  private record Table(Map<String, Block> blocks, List<Entry> families) {}

  private record Entry(
      String name,
      List<String> modelTypes,
      List<String> architectures,
      List<String> prefixes,
      String layers,
      String experts,
      String mtp,
      List<String> blocks,
      Map<Role, List<String>> kept) {

    ModelFamily resolve(Map<String, Block> known) {
      List<Block> resolved = blocks.stream().map(block -> {
        if (!known.containsKey(block)) {
          throw new IllegalArgumentException("Invalid model family " + name + ": there is no block " + block);
        }

        return known.get(block);
      }).toList();
      return new ModelFamily(
          name,
          modelTypes,
          architectures == null ? List.of() : architectures,
          prefixes == null ? List.of("") : prefixes,
          layers,
          experts,
          mtp,
          resolved,
          kept);
    }
  }
}
