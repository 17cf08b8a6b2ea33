package org.sparkfp4.checkpoint;

import java.util.List;
import java.util.Optional;

/**
 * The tensors of a checkpoint that a stored weight is made of, as their headers are.
 *
 * @param codes its codes, packed or not
 * @param scale its scales
 * @param others what describes it besides: its shape, the scale of its activations
 */
public record StoredParts(LocatedTensor codes, LocatedTensor scale, List<LocatedTensor> others) {
  public StoredParts {
    others = List.copyOf(others);
  }

  /** The one of the others whose name behind the module's is that. */
  public Optional<LocatedTensor> other(String part) {
    return others.stream().filter(tensor -> tensor.name().endsWith("." + part)).findFirst();
  }
}
