package org.sparkfp4.calibration;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Decides what statistics are made of a source's inputs, and in which files they are kept. */
final class CalibrationPlanner {
  private static final long TASK_BYTES = 128L << 20;
  private static final long FILE_BYTES = 128L << 20;

  private final HessianKind hessian;
  private final ModelModules model;
  private final long taskBytes;
  private final long fileBytes;
  private final Map<String, InputModule> inputs = new LinkedHashMap<>();
  private final Map<String, String> owners = new LinkedHashMap<>();
  private final List<StatisticsEntry> entries = new ArrayList<>();
  private long bytesOfFile;

  /** @param model the model, or null if it is not known */
  CalibrationPlanner(HessianKind hessian, ModelModules model) {
    this(hessian, model, TASK_BYTES, FILE_BYTES);
  }

  /**
   * @param taskBytes what the sums of a task that reads may take, unless a band of 16 columns takes more
   * @param fileBytes bytes of a file, unless one module's take more: a task that writes holds its sums
   */
  CalibrationPlanner(HessianKind hessian, ModelModules model, long taskBytes, long fileBytes) {
    this.hessian = hessian;
    this.model = model;
    this.taskBytes = taskBytes;
    this.fileBytes = fileBytes;
  }

  /**
   * The plan of a source.
   *
   * @throws IllegalArgumentException if an input is of no layer of the model, its K differs, two inputs are of one
   *     layer, or there is a routing but no model to name the experts
   */
  CalibrationPlan plan(ActivationSource source) {
    for (FoundInput input : source.inputs()) {
      if (input.routed()) {
        addRouted(input);
      } else {
        if (model != null) {
          model.require(input);
        }

        inputs.put(input.module(), new InputModule(input.module(), (int) input.cols(), entries.size(), 0));
        addEntry(input.module(), input.cols(), input);
      }
    }

    if (model != null) {
      model.silentExperts(owners).forEach((module, cols) -> addEntry(module, cols, null));
    }

    return new CalibrationPlan(
        hessian, taskBytes, inputs, entries, source.routings(), entries.get(entries.size() - 1).shard() + 1);
  }

  private void addRouted(FoundInput input) {
    if (model == null) {
      throw new IllegalArgumentException("Cannot calibrate the experts of " + input.module() + " (" + input.where()
          + "): a routing has their numbers, and only the model their names; give --model DIR");
    }

    List<String> experts = model.routed(input);
    inputs.put(
        input.module(), new InputModule(input.module(), (int) input.cols(), entries.size(), experts.size()));
    experts.forEach(expert -> addEntry(expert, input.cols(), input));
  }

  private void addEntry(String module, long cols, FoundInput input) {
    String owner = input == null ? "" : input.module();
    String known = owners.putIfAbsent(module, owner);
    if (known != null) {
      throw new IllegalArgumentException("Invalid activations: inputs " + known + " and " + owner
          + " are both of module " + module + "; give the one or the other");
    }

    int shard = entries.isEmpty() ? 0 : entries.get(entries.size() - 1).shard();
    long bytes = new EntryLayout(new StatisticsEntry(module, (int) cols, shard), hessian, true).bytes();
    if (bytesOfFile > 0 && bytesOfFile + bytes > fileBytes) {
      shard++;
      bytesOfFile = 0;
    }

    bytesOfFile += bytes;
    entries.add(new StatisticsEntry(module, (int) cols, shard));
  }
}
