package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Takes tensors that hold the matrices of all experts of a layer for what they stand for: a matrix an expert and linear
 * layer, or one {@code [experts, rows, K]} a stack where the output keeps them stacked. Nothing is read: a matrix is a
 * slice of its tensor.
 *
 * <p>The family says in which order the dimensions are, and config.json must agree.
 */
final class ExpertStacks {
  private final ModelFamily family;
  private final ModelConfig config;
  private final boolean batch;
  private final long layers;
  private final Map<String, LocatedTensor> biases = new HashMap<>();
  private final Map<String, LocatedTensor> origins = new HashMap<>();

  /**
   * @param batch whether the output keeps the experts stacked where runtimes want them so
   */
  ExpertStacks(ModelFamily family, ModelConfig config, boolean batch) {
    this.family = family;
    this.config = config;
    this.batch = batch;
    this.layers = config.require("num_hidden_layers");
  }

  /**
   * The tensors with slices in place of stacks.
   *
   * @throws IllegalArgumentException if config.json does not tell the order of a stack's dimensions, or contradicts it
   */
  List<LocatedTensor> unstack(List<LocatedTensor> tensors) {
    Map<String, List<Found>> byLayer = new LinkedHashMap<>();
    List<LocatedTensor> result = new ArrayList<>(tensors.size());
    for (LocatedTensor tensor : tensors) {
      ModelFamily.KnownStack known = family.stack(tensor.name());
      if (known == null || family.layer(tensor.name()) >= layers) {
        result.add(tensor);
        if (tensor.name().endsWith(ModelFamily.BIAS)) {
          biases.put(tensor.name(), tensor);
        }
      } else {
        String path = tensor.name().substring(0, tensor.name().lastIndexOf('.'));
        byLayer.computeIfAbsent(path, key -> new ArrayList<>()).add(new Found(tensor, known));
      }
    }

    byLayer.forEach((path, found) -> {
      StackOrder order = order(found);
      found.forEach(stack -> slice(path, stack, order, result));
    });
    return result;
  }

  /** The stack that each slice is a part of, by the slice's name. */
  Map<String, LocatedTensor> origins() {
    return origins;
  }

  /** The order that all stacks of a layer's experts have: one alone may fit both, as where rows and K are the same. */
  private StackOrder order(List<Found> stacks) {
    Set<StackOrder> possible = EnumSet.allOf(StackOrder.class);
    for (Found found : stacks) {
      LocatedTensor tensor = found.tensor;
      Set<StackOrder> fitting = EnumSet.noneOf(StackOrder.class);
      for (StackOrder order : orders(found)) {
        if (tensor.shape().equals(shape(found, order))) {
          fitting.add(order);
        }
      }

      if (tensor.shape().contains(0L)) {
        throw new IllegalArgumentException("Invalid tensor " + tensor.name() + " (" + tensor.file() + "): its shape is "
            + tensor.shape() + ", which has no elements");
      }

      possible.retainAll(fitting);
      if (possible.isEmpty()) {
        throw new IllegalArgumentException("Invalid tensor " + tensor.name() + " (" + tensor.file() + "): its shape is "
            + tensor.shape() + ", but family " + family.name() + " and config.json make it "
            + expected(found) + (fitting.isEmpty() ? "" : ", and it is not in the order of the layer's other stacks"));
      }
    }

    if (possible.size() > 1) {
      LocatedTensor tensor = stacks.get(0).tensor;
      throw new IllegalArgumentException("Cannot tell rows and K apart in " + tensor.name() + " " + tensor.shape() + " ("
          + tensor.file() + "): family " + family.name() + " stores them in either order; give --family a file whose "
          + "stacks have one order");
    }

    return possible.iterator().next();
  }

  private String expected(Found found) {
    List<String> texts = new ArrayList<>();
    for (StackOrder order : orders(found)) {
      texts.add(shape(found, order) + " (" + order + ")");
    }

    return String.join(" or ", texts);
  }

  private static List<StackOrder> orders(Found found) {
    return found.known.stack().orders().stream().filter(found.known.part()::allows).toList();
  }

  private List<Long> shape(Found found, StackOrder order) {
    return found.known.part().shape(order, experts(), rows(found), k(found));
  }

  private void slice(String path, Found found, StackOrder order, List<LocatedTensor> result) {
    LocatedTensor bias = biases.get(path + "." + found.known.name() + ModelFamily.BIAS);
    if (bias != null) {
      requireBias(bias, found);
    }

    boolean whole = batch && found.known.block().batched();
    if (whole) {
      add(stacked(path, found, order), found, result);
      return;
    }

    if (bias != null) {
      throw new IllegalArgumentException("Cannot split " + found.tensor.name() + " (" + found.tensor.file()
          + ") into a tensor an expert: its biases are stacked beside it; use --layout modelopt, which keeps experts "
          + "stacked");
    }

    long before = 0;
    for (String linear : found.known.stack().linears()) {
      long rows = rows(found, linear);
      for (long expert = 0; expert < experts(); expert++) {
        String name = path + "." + expert + "." + linear + found.known.part().sliceSuffix();
        add(matrix(found, order, expert, before, rows, name), found, result);
      }

      before += found.known.stack().interleaved() ? 1 : rows;
    }
  }

  /** A bias is copied as it is: of another shape than its stack's it would be found out by whoever loads the output. */
  private void requireBias(LocatedTensor bias, Found found) {
    List<Long> expected = List.of(experts(), rows(found));
    if (!bias.shape().equals(expected)) {
      throw new IllegalArgumentException("Invalid tensor " + bias.name() + " (" + bias.file() + "): its shape is "
          + bias.shape() + ", but biases of the experts in " + found.tensor.name() + " are " + expected
          + " by config.json; download the checkpoint again");
    }
  }

  private void add(LocatedTensor slice, Found found, List<LocatedTensor> result) {
    origins.put(slice.name(), found.tensor);
    result.add(slice);
  }

  /** The whole stack as {@code [experts, rows, K]}. */
  private LocatedTensor stacked(String path, Found found, StackOrder order) {
    LocatedTensor tensor = found.tensor;
    long element = tensor.dtype().bytes(1);
    long rows = rows(found);
    long cols = cols(found);
    List<Long> strides =
        order == StackOrder.ROWS_K ? List.of() : List.of(rows * cols * element, element, rows * element);
    return new LocatedTensor(
        path + "." + found.known.name() + found.known.part().sliceSuffix(), tensor.dtype(),
        List.of(experts(), rows, cols), tensor.file(), tensor.offset(), tensor.length(), strides);
  }

  /**
   * The matrix of an expert.
   *
   * @param first its first row among the rows of the stack
   */
  private LocatedTensor matrix(
      Found found, StackOrder order, long expert, long first, long rows, String name) {
    LocatedTensor tensor = found.tensor;
    long element = tensor.dtype().bytes(1);
    long all = rows(found);
    long cols = cols(found);
    long step = found.known.stack().interleaved() ? found.known.stack().linears().size() : 1;
    long rowStride = order == StackOrder.ROWS_K ? cols * element : element;
    long colStride = order == StackOrder.ROWS_K ? element : all * element;
    boolean contiguous = order == StackOrder.ROWS_K && step == 1;
    return new LocatedTensor(
        name, tensor.dtype(), List.of(rows, cols), tensor.file(),
        tensor.offset() + expert * all * cols * element + first * rowStride, rows * cols * element,
        contiguous ? List.of() : List.of(step * rowStride, colStride));
  }

  private long experts() {
    return config.require(family.expertsKey());
  }

  private long rows(Found found) {
    return found.known.stack().linears().stream().mapToLong(linear -> rows(found, linear)).sum();
  }

  private long rows(Found found, String linear) {
    return config.require(found.known.block().linears().get(linear).get(0));
  }

  /** Elements of a row in the tensor. */
  private long cols(Found found) {
    return found.known.part().cols(k(found));
  }

  private long k(Found found) {
    return config.require(found.known.block().linears().get(found.known.stack().linears().get(0)).get(1));
  }

  private record Found(LocatedTensor tensor, ModelFamily.KnownStack known) {}
}
