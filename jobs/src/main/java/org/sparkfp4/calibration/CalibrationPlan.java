package org.sparkfp4.calibration;

import java.io.Serializable;
import java.util.List;
import java.util.Map;

/**
 * What a calibration sums up, known before an activation is read.
 *
 * @param hessian what is kept of x xᵀ
 * @param taskBytes what the sums of a task may take
 * @param inputs the names that activations come under
 * @param entries the statistics that are made
 * @param routings the routing of experts' inputs, by {@link #routingKey}
 * @param shards number of files
 */
record CalibrationPlan(
    HessianKind hessian,
    long taskBytes,
    Map<String, InputModule> inputs,
    List<StatisticsEntry> entries,
    Map<String, RoutingTensor> routings,
    int shards)
    implements Serializable {
  CalibrationPlan {
    inputs = Map.copyOf(inputs);
    entries = List.copyOf(entries);
    routings = Map.copyOf(routings);
  }

  /** How inputs are cut into bands. */
  Bands bands() {
    return new Bands(hessian, taskBytes);
  }

  /** The key of an input in a file; of a table the file is the empty text. */
  static String routingKey(String file, String module) {
    return file + "/" + module;
  }
}
