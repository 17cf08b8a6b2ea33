package org.sparkfp4.calibration;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.progress.ProgressView;

/** Runs of a calibration over files of activations. */
abstract class CalibrationRuns {
  static final int COLS = 96;
  static final String MODULE = "model.layers.0.self_attn.o_proj";

  @TempDir
  Path folder;

  SparkSession spark;
  Path input;
  Path output;

  @BeforeEach
  void makeFolders() throws IOException {
    spark = TestSpark.session();
    input = Files.createDirectories(folder.resolve("activations"));
    output = folder.resolve("statistics");
  }

  void write(String name, Map<String, StoredTensor> tensors) throws IOException {
    CheckpointFiles.write(input.resolve(name), tensors);
  }

  StatisticsFiles calibrate(HessianKind hessian) throws IOException {
    return calibrate(hessian, null);
  }

  StatisticsFiles calibrate(HessianKind hessian, ModelModules model) throws IOException {
    run(new ActivationFiles(spark, input.toString()), hessian, model, false);
    return new StatisticsFiles(output);
  }

  void run(ActivationSource source, HessianKind hessian, ModelModules model, boolean overwrite)
      throws IOException {
    new Calibration(spark, source, model, hessian, "auto", "auto", "test").run(
        FileSystem.getLocal(new Configuration()).getRaw(), new org.apache.hadoop.fs.Path(output.toUri()), overwrite,
        ProgressView.of("off"));
  }
}
