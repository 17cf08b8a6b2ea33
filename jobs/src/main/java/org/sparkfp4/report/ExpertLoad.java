package org.sparkfp4.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.Utf8Json;

/**
 * Tokens that each expert saw while statistics were taken.
 *
 * @param layers path of the experts of each layer
 * @param tokens tokens by layer and expert
 */
public record ExpertLoad(List<String> layers, List<long[]> tokens) {
  private static final String FILE = "statistics.json";
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * What a folder of statistics says; null where it says nothing of experts.
   *
   * @throws IOException if there are no statistics
   */
  public static ExpertLoad read(Configuration conf, String folder) throws IOException {
    Path file = new Path(folder, FILE);
    try (InputStream in = RawFileSystem.of(file, conf).open(file)) {
      return of(JSON.readTree(Utf8Json.reader(in)));
    } catch (FileNotFoundException e) {
      throw new IOException("Cannot read statistics from " + folder + ": it has no " + FILE, e);
    } catch (JsonProcessingException e) {
      throw new IOException("Invalid statistics " + file + ": " + e.getOriginalMessage(), e);
    }
  }

  private static ExpertLoad of(JsonNode statistics) {
    List<String> layers = new ArrayList<>();
    List<long[]> tokens = new ArrayList<>();
    for (JsonNode layer : statistics.path("experts")) {
      layers.add(layer.path("experts").asText());
      tokens.add(IntStream.range(0, layer.path("tokens").size())
          .mapToLong(expert -> layer.path("tokens").path(expert).asLong())
          .toArray());
    }

    return layers.isEmpty() ? null : new ExpertLoad(layers, tokens);
  }

  /** Experts that saw no token, as the paths of their modules. */
  List<String> dead() {
    List<String> dead = new ArrayList<>();
    for (int layer = 0; layer < layers.size(); layer++) {
      for (int expert = 0; expert < tokens.get(layer).length; expert++) {
        if (tokens.get(layer)[expert] == 0) {
          dead.add(layers.get(layer) + "." + expert);
        }
      }
    }

    return dead;
  }

  HeatMap heatMap() {
    int experts = tokens.stream().mapToInt(each -> each.length).max().orElse(0);
    double[][] values = new double[layers.size()][experts];
    for (int layer = 0; layer < values.length; layer++) {
      Arrays.fill(values[layer], Double.NaN);
      for (int expert = 0; expert < tokens.get(layer).length; expert++) {
        values[layer][expert] = tokens.get(layer)[expert];
      }
    }

    List<String> rows = new ArrayList<>();
    for (int layer = 0; layer < values.length; layer++) {
      Integer number = ModulePlace.of(layers.get(layer)).layer();
      rows.add(number == null ? layers.get(layer) : number.toString());
    }

    return HeatMap.of("tokens", rows, IntStream.range(0, experts).mapToObj(Integer::toString).toList(), values);
  }
}
