package org.sparkfp4.calibration;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.sparkfp4.checkpoint.BlockTensors;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.ModelTensors;
import org.sparkfp4.checkpoint.Role;
import org.sparkfp4.checkpoint.RoledTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.TensorClassifier;

/** The linear layers of the model that activations are of. */
public final class ModelModules {
  private final String model;
  private final Map<String, Long> cols = new HashMap<>();
  private final Map<String, TreeMap<Integer, BlockTensors>> experts = new LinkedHashMap<>();

  /**
   * Finds a model's layers, from headers alone.
   *
   * @throws IllegalArgumentException if the checkpoint is not one of its family
   */
  public ModelModules(Checkpoint checkpoint, ModelFamily family) {
    this.model = checkpoint.path().toString();
    ModelTensors tensors =
        new TensorClassifier(family, ModelConfig.of(checkpoint), false).classify(checkpoint.tensors());
    for (BlockTensors block : tensors.blocks()) {
      block.weights().values().forEach(this::add);
      if (block.role() == Role.ROUTED_EXPERT) {
        String path = parent(block.path());
        int expert = Integer.parseInt(block.path().substring(path.length() + 1));
        experts.computeIfAbsent(path, key -> new TreeMap<>()).put(expert, block);
      }
    }

    tensors.others().stream().map(RoledTensor::tensor)
        .filter(tensor -> SourceTensors.isWeight(tensor.name()) && tensor.shape().size() == 2)
        .forEach(this::add);
  }

  private void add(LocatedTensor weight) {
    cols.put(SourceTensors.module(weight.name()), weight.cols());
  }

  /** The model's folder. */
  String model() {
    return model;
  }

  /**
   * Holds an input against the layer that it is of.
   *
   * @throws IllegalArgumentException if there is none of that name, or its K differs
   */
  void require(FoundInput input) {
    if (!cols.containsKey(input.module())) {
      throw new IllegalArgumentException("Invalid activations: module " + input.module() + " (" + input.where()
          + ") is no linear layer of " + model + "; name inputs as <module>.input, and put <mlp>.routing beside the "
          + "<mlp>.input that experts share");
    }

    requireCols(input, input.module());
  }

  /**
   * For each expert, by its number, the layer that an input shared by routing is kept under: the first of those that
   * share it.
   *
   * @throws IllegalArgumentException if the input is of no experts of the model, or their K differs
   */
  List<String> routed(FoundInput input) {
    List<String> layers = experts.entrySet().stream()
        .filter(entry -> entry.getKey().equals(input.module()) || parent(entry.getKey()).equals(input.module()))
        .flatMap(entry -> entry.getValue().values().stream())
        .map(block -> block.path() + "." + block.groups().get(0).get(0))
        .toList();
    if (layers.isEmpty()) {
      throw new IllegalArgumentException("Invalid activations: module " + input.module() + " (" + input.where()
          + ") has a routing, but " + model + " has no routed experts there; it has them at "
          + experts.keySet().stream().limit(3).collect(Collectors.joining(", ")));
    }

    layers.forEach(layer -> requireCols(input, layer));
    return layers;
  }

  private void requireCols(FoundInput input, String layer) {
    if (cols.get(layer) != input.cols()) {
      throw new IllegalArgumentException("Invalid activations: module " + input.module() + " (" + input.where()
          + ") has K " + input.cols() + ", but the weight of " + layer + " has " + cols.get(layer)
          + "; record the activations of this model");
    }
  }

  /**
   * The layers of experts that no token was routed to, where others of their kind are among {@code modules}: each with
   * its K. Statistics name them too, with no tokens.
   */
  Map<String, Long> silentExperts(Map<String, ?> modules) {
    Map<String, Long> silent = new LinkedHashMap<>();
    for (TreeMap<Integer, BlockTensors> layer : experts.values()) {
      int groups = layer.firstEntry().getValue().groups().size();
      for (int g = 0; g < groups; g++) {
        int group = g;
        if (layer.values().stream().anyMatch(block -> has(modules, block, group))) {
          layer.values().stream().filter(block -> !has(modules, block, group)).forEach(block -> {
            String module = block.path() + "." + block.groups().get(group).get(0);
            silent.put(module, cols.get(module));
          });
        }
      }
    }

    return silent;
  }

  private static boolean has(Map<String, ?> modules, BlockTensors block, int group) {
    return block.groups().get(group).stream().anyMatch(linear -> modules.containsKey(block.path() + "." + linear));
  }

  private static String parent(String path) {
    return path.substring(0, Math.max(0, path.lastIndexOf('.')));
  }
}
