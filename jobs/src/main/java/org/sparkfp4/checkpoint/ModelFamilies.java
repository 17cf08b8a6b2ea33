package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.function.Function;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.files.Utf8Json;

/** Model families: those of the table families.json beside this class, or those of a user's file of the same form. */
public final class ModelFamilies {
  private static final ObjectMapper JSON = JsonMapper.builder()
      .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
      .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
      .defaultSetterInfo(JsonSetter.Value.forContentNulls(Nulls.FAIL))
      .build();

  private final List<ModelFamily> families;

  private ModelFamilies(List<ModelFamily> families) {
    this.families = List.copyOf(families);
  }

  /** The families that come with the product. */
  public static ModelFamilies builtIn() {
    Table table = builtInTable();
    return new ModelFamilies(table.resolve(table.blocks(), ""));
  }

  /**
   * The families of a user's file. They may be made of blocks of the product's own table.
   *
   * @throws IllegalArgumentException if it is none; the message names the file and the field
   */
  public static ModelFamilies ofFile(Configuration configuration, String file) throws IOException {
    Path path = new Path(file);
    FileSystem fileSystem = RawFileSystem.of(path, configuration);
    byte[] content;
    try (InputStream in = fileSystem.open(path)) {
      content = in.readAllBytes();
    }

    return ofFile(file, content);
  }

  static ModelFamilies ofFile(String file, byte[] content) throws IOException {
    try {
      Table table = JSON.readValue(Utf8Json.reader(new ByteArrayInputStream(content)), Table.class);
      if (table == null) {
        throw new IllegalArgumentException("it is null, must be an object with families");
      }

      Map<String, Block> blocks = new HashMap<>(builtInTable().blocks());
      blocks.putAll(table.blocks());
      if (table.families().isEmpty()) {
        throw new IllegalArgumentException("Invalid field families: there is none");
      }

      return new ModelFamilies(table.resolve(blocks, Sha256.hex(content)));
    } catch (JsonMappingException e) {
      String field = field(e);
      String problem = e.getCause() instanceof IllegalArgumentException bad ? bad.getMessage() : e.getOriginalMessage();
      throw new IllegalArgumentException(
          "Invalid family file " + file + ": " + (field.isEmpty() ? "" : "field " + field + ": ") + problem, e);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("Invalid family file " + file + ": it is no JSON: " + e.getMessage(), e);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("Invalid family file " + file + ": " + e.getMessage(), e);
    }
  }

  List<ModelFamily> all() {
    return families;
  }

  /** The path of a field in the file, such as {@code families[0].kept}. */
  private static String field(JsonMappingException e) {
    StringBuilder path = new StringBuilder();
    for (JsonMappingException.Reference reference : e.getPath()) {
      if (reference.getFieldName() == null) {
        path.append('[').append(reference.getIndex()).append(']');
      } else {
        path.append(path.isEmpty() ? "" : ".").append(reference.getFieldName());
      }
    }

    return path.toString();
  }

  private static Table builtInTable() {
    try (InputStream table = ModelFamilies.class.getResourceAsStream("families.json")) {
      return JSON.readValue(table, Table.class);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the table of model families", e);
    }
  }

  /**
   * The family of a checkpoint: that of its model_type, else that of its architectures.
   *
   * @throws IllegalArgumentException if no family is that of the config; the message lists the known model types
   */
  public ModelFamily of(ModelConfig config) {
    return find(config).orElseThrow(() -> {
      TreeSet<String> known = new TreeSet<>();
      families.forEach(each -> known.addAll(each.modelTypes()));
      return new IllegalArgumentException("Cannot tell the model family: config.json has model_type "
          + config.modelTypes() + " and architectures " + config.architectures() + "; known model types are "
          + String.join(", ", known) + "; describe another with --family FILE");
    });
  }

  /** The same, nothing if no family is that of the config. */
  public Optional<ModelFamily> find(ModelConfig config) {
    ModelFamily family = find(config.modelTypes(), ModelFamily::modelTypes);
    return Optional.ofNullable(
        family == null ? find(config.architectures(), ModelFamily::architectures) : family);
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
  private record Table(Map<String, Block> blocks, List<FamilyEntry> families) {
    Table {
      blocks = blocks == null ? Map.of() : blocks;
      families = families == null ? List.of() : families;
    }

    List<ModelFamily> resolve(Map<String, Block> known, String digest) {
      List<ModelFamily> resolved = new ArrayList<>();
      families.forEach(entry -> resolved.add(entry.resolve(known, digest)));
      return resolved;
    }
  }
}
