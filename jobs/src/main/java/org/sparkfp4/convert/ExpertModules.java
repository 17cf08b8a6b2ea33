package org.sparkfp4.convert;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.sparkfp4.layouts.ExpertShape;

/** A layer's routed experts whose matrices are stored each by itself, as they are found. */
final class ExpertModules {
  /** What gate, up and down are called. */
  private static final List<List<String>> PROJECTIONS =
      List.of(List.of("gate_proj", "up_proj", "down_proj"), List.of("w1", "w3", "w2"));

  private final String path;
  private final Map<Integer, Map<String, QuantizedLinear>> experts = new TreeMap<>();

  /** @param path what their names begin with, such as {@code model.layers.3.mlp.experts} */
  ExpertModules(String path) {
    this.path = path;
  }

  void add(int expert, String projection, QuantizedLinear linear) {
    experts.computeIfAbsent(expert, number -> new HashMap<>()).put(projection, linear);
  }

  /**
   * The layer, once all is found.
   *
   * @param rest what is no part of an NVFP4 layer
   * @throws IllegalArgumentException if a matrix is missing, too many, or of another shape than the others
   */
  ExpertLayer layer(UnclaimedTensors rest, SourceConfig config) {
    List<String> names = PROJECTIONS.get(experts.values().iterator().next().containsKey("w2") ? 1 : 0);
    boolean gated = experts.values().stream().anyMatch(expert -> expert.containsKey(names.get(0)));
    List<String> projections = gated ? names : names.subList(1, names.size());
    requireKnown(projections);
    int found = experts.keySet().stream().mapToInt(Integer::intValue).max().orElseThrow() + 1;
    List<List<QuantizedLinear>> modules = new ArrayList<>();
    for (int e = 0; e < config.experts(path, found); e++) {
      List<QuantizedLinear> expert = new ArrayList<>();
      for (String projection : projections) {
        expert.add(module(e, projection, rest));
      }

      modules.add(expert);
    }

    QuantizedLinear up = modules.get(0).get(projections.size() - 2);
    ExpertShape shape = new ExpertShape(gated, modules.size(), up.cols(), up.rows());
    ExpertLayer layer = new ExpertLayer(
        path, projections, shape, rest.routerBias(path, shape.experts()), new StoredExperts.Modules(modules));
    for (int e = 0; e < modules.size(); e++) {
      requireShape(layer, e, modules.get(e));
    }

    return layer;
  }

  private void requireKnown(List<String> projections) {
    experts.forEach((number, expert) -> {
      for (String name : new TreeSet<>(expert.keySet())) {
        if (!projections.contains(name)) {
          throw new IllegalArgumentException("Cannot convert " + path + "." + number + "." + name + " ("
              + expert.get(name).codes().file() + "): the layer's experts consist of " + String.join(", ", projections)
              + "; download the checkpoint again, or take that matrix out of it");
        }
      }
    });
  }

  private QuantizedLinear module(int expert, String projection, UnclaimedTensors rest) {
    QuantizedLinear linear = experts.getOrDefault(expert, Map.of()).get(projection);
    if (linear == null) {
      String module = path + "." + expert + "." + projection;
      throw new IllegalArgumentException("Cannot convert " + path + ": " + module
          + (rest.contains(module + ".weight") ? " is not quantized" : " is missing")
          + ", and runtimes take all experts of a layer or none; quantize or download the checkpoint again");
    }

    return linear;
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
}
