package org.sparkfp4.jobs.synthetic;

/**
 * The sizes of a synthetic model.
 *
 * @param layers decoder layers, dense ones included, a layer for multi-token prediction not
 * @param experts routed experts of a layer
 * @param hidden width of the model, the K of gate and up, a multiple of 16
 * @param intermediate width of a routed expert, the K of down, a multiple of 16
 * @param vocab rows of the embedding and of lm_head
 */
public record ModelShape(int layers, int experts, int hidden, int intermediate, int vocab) {
  public ModelShape {
    require(layers >= 1, "layers", layers, "at least 1");
    require(experts >= 1, "experts", experts, "at least 1");
    require(hidden >= 16 && hidden % 16 == 0, "hidden", hidden, "a positive multiple of 16");
    require(intermediate >= 16 && intermediate % 16 == 0, "intermediate", intermediate, "a positive multiple of 16");
    require(vocab >= 1, "vocab", vocab, "at least 1");
  }

  ModelShape withLayersAndExperts(int newLayers, int newExperts) {
    return new ModelShape(newLayers, newExperts, hidden, intermediate, vocab);
  }

  /** The shape with widths divided by {@code divisor} and a vocabulary that shrinks as the experts' matrices do. */
  ModelShape narrowed(int divisor) {
    int words = Math.max(256, ceil(vocab / divisor / divisor, 64));
    return divisor == 1
        ? this
        : new ModelShape(layers, experts, ceil(hidden / divisor, 16), ceil(intermediate / divisor, 16), words);
  }

  static int ceil(int value, int multiple) {
    return Math.max(1, (value + multiple - 1) / multiple) * multiple;
  }

  private static void require(boolean holds, String name, int value, String rule) {
    if (!holds) {
      throw new IllegalArgumentException("Invalid " + name + ": " + value + " (must be " + rule + ")");
    }
  }
}
