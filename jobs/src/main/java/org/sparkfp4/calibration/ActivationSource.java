package org.sparkfp4.calibration;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.sparkfp4.checkpoint.SourceFile;

/** Where activations come from. */
interface ActivationSource {
  /** The inputs, one a name. */
  List<FoundInput> inputs();

  /** The routings that lie beside the inputs and not in their rows, by {@link CalibrationPlan#routingKey}. */
  Map<String, RoutingTensor> routings();

  /** The activations, columns as in {@link ActivationSlab#SCHEMA}; in a partition, an input's rows together. */
  Dataset<Row> rows();

  /** The files that are read; empty where there are none that tell whether the activations are the same again. */
  List<SourceFile> files();
}
