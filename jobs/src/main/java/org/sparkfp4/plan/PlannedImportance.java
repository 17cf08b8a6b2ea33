package org.sparkfp4.plan;

import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.gptq.LayerInputs;

/**
 * The statistics that a weighted search weighs errors by.
 *
 * @param folder the folder of the statistics, a qualified path
 * @param files its files that are read
 * @param tensors E[x^2] or E[x x^T] of the input of each unit that has statistics, by the unit's number. For GPTQ,
 *     {@code [2, K, K]}: all of E[x x^T], and that over held-out tokens
 */
public record PlannedImportance(String folder, List<SourceFile> files, Map<Integer, LocatedTensor> tensors) {
  public PlannedImportance {
    files = List.copyOf(files);
    tensors = Map.copyOf(tensors);
  }

  /** Whether the codes of a unit may be GPTQ's. */
  public boolean isFull(Unit unit) {
    LocatedTensor tensor = tensors.get(unit.id());
    return tensor != null && tensor.length() == LayerInputs.bytes(unit.cols());
  }
}
