package org.sparkfp4.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.calibration.InputAmaxes;
import org.sparkfp4.calibration.InputScaleRule;
import org.sparkfp4.calibration.ModelModules;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.plan.StatisticsOptions;
import org.sparkfp4.safetensors.RawFileSystem;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import picocli.CommandLine.Spec.Target;

/** The options that bring what {@code calibrate} found out about a model's activations. */
final class StatisticsOption {
  @Option(names = "--statistics", paramLabel = "DIR", converter = FolderText.class,
      description = "What calibrate found out about the activations of the layers.")
  private String folder;

  @Option(names = "--input-scale", paramLabel = "RULE",
      description = "With statistics, what the scales of activations are made of: amax (default), percentile (99.99 of "
          + "the blocks) or headroom (as much above as small blocks allow).")
  private String inputScale;

  @Spec(Target.MIXEE)
  private CommandSpec spec;

  /**
   * The statistics; null where there are none.
   *
   * @throws IllegalArgumentException if they are not of this model
   */
  Statistics statistics(Configuration conf, Checkpoint source, ModelFamily family) throws IOException {
    if (folder == null) {
      if (inputScale != null) {
        throw new ParameterException(
            spec.commandLine(), "Invalid --input-scale: there is nothing to make scales of without --statistics");
      }

      return null;
    }

    Path path = new Path(folder);
    Statistics statistics = Statistics.open(conf, RawFileSystem.of(path, conf).makeQualified(path));
    statistics.requireOf(new ModelModules(source, family));
    return statistics;
  }

  /** How they are used, as a plan has it; null where there are none. */
  StatisticsOptions options(Statistics statistics, boolean weightOnly) {
    return statistics == null
        ? null
        : new StatisticsOptions(statistics.digest(), weightOnly ? null : rule().optionName());
  }

  /** The amax of layers' inputs; null where there are no statistics. */
  InputAmaxes amaxes(Statistics statistics) {
    return statistics == null ? null : new InputAmaxes(statistics.index(), rule());
  }

  private InputScaleRule rule() {
    try {
      return inputScale == null ? InputScaleRule.AMAX : InputScaleRule.named(inputScale);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }
}
