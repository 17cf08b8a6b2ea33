package org.sparkfp4.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.calibration.ImportanceFinder;
import org.sparkfp4.calibration.InputAmaxes;
import org.sparkfp4.calibration.InputScaleRule;
import org.sparkfp4.calibration.ModelModules;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.Weighting;
import org.sparkfp4.plan.QuantizationPlan;
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

  @Option(names = "--weighting", paramLabel = "NAME",
      description = "What --scale-search weighted weighs errors by: diagonal (default), the mean square of each input "
          + "channel, or hessian, the products of the 16 channels of a block.")
  private String weighting;

  @Spec(Target.MIXEE)
  private CommandSpec spec;

  /** Holds the options against a search: only a weighted one weighs, and only with statistics. */
  void requireFor(ScaleSearch search) {
    if (search == ScaleSearch.WEIGHTED && folder == null) {
      throw new ParameterException(spec.commandLine(), "Invalid --scale-search: weighted takes what calibrate found "
          + "out; give its folder by --statistics, or choose sweep");
    }

    if (search != ScaleSearch.WEIGHTED && weighting != null) {
      throw new ParameterException(spec.commandLine(), "Invalid --weighting: " + weighting + ", but --scale-search is "
          + search.optionName() + ", not weighted");
    }

    weighting();
  }

  /** The plan with what its search weighs errors by, if it weighs them. */
  QuantizationPlan weigh(Configuration conf, QuantizationPlan plan, Statistics statistics) throws IOException {
    return plan.options().scaleSearch().equals(ScaleSearch.WEIGHTED.optionName())
        ? plan.withImportance(
            new ImportanceFinder(conf, statistics.folder(), statistics.index(), weighting()).find(plan))
        : plan;
  }

  private Weighting weighting() {
    try {
      return weighting == null ? Weighting.DIAGONAL : Weighting.named(weighting);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

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
