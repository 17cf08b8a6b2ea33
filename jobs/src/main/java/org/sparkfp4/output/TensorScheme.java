package org.sparkfp4.output;

import java.util.List;

/**
 * What became of the source's tensors whose names differ in numbers only.
 *
 * @param tensors their names, each number a {@code *}
 * @param indices the numbers that stand for each {@code *}, such as {@code 0-3,7}: every combination is a tensor
 * @param count how many they are
 * @param from how the source stores them: an element type, or codes and their scales
 * @param to {@code nvfp4}, {@code copied}, {@code bf16} or {@code dropped}
 */
public record TensorScheme(String tensors, List<String> indices, long count, String from, String to) {
  public TensorScheme {
    indices = List.copyOf(indices);
  }
}
