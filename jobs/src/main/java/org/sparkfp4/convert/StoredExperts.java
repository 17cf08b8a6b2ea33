package org.sparkfp4.convert;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.ExpertLayout;

/** Where the experts of a layer are stored. */
sealed interface StoredExperts extends Serializable {
  /** Whether a scale of activations is known of a projection's expert. */
  boolean hasInput(int expert, int projection);

  /**
   * Each matrix by itself.
   *
   * @param experts of each expert gate, up and down, or up and down
   */
  record Modules(List<List<QuantizedLinear>> experts) implements StoredExperts {
    @Override
    public boolean hasInput(int expert, int projection) {
      return experts.get(expert).get(projection).input() != null;
    }
  }

  /**
   * All experts of a product in one tensor.
   *
   * @param layout how
   * @param tensors in the layout's order
   * @param globals of each projection, an expert after another
   * @param inputs the same of the activations' scales; an empty list where there are none
   */
  record Stack(
      ExpertLayout layout,
      List<LocatedTensor> tensors,
      List<List<GlobalScale>> globals,
      List<List<GlobalScale>> inputs)
      implements StoredExperts {
    @Override
    public boolean hasInput(int expert, int projection) {
      return !inputs.get(projection).isEmpty();
    }
  }
}
