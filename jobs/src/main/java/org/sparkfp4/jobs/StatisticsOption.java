package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.calibration.HessianKind;
import org.sparkfp4.calibration.ImportanceFinder;
import org.sparkfp4.calibration.InputAmaxes;
import org.sparkfp4.calibration.InputScaleRule;
import org.sparkfp4.calibration.ModelModules;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.Weighting;
import org.sparkfp4.plan.PlanOptions;
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
  private static final double DAMPING = 0.05;

  @Option(names = "--statistics", paramLabel = "DIR", converter = FolderText.class,
      description = "What calibrate found out about the activations of the layers.")
  private String folder;

  @Option(names = "--input-scale", paramLabel = "RULE",
      description = "With statistics, what the scales of activations are made of: amax (default), percentile (99.99 of "
          + "the blocks) or headroom (as much above as small blocks allow).")
  private String inputScale;

  @Option(names = "--weighting", paramLabel = "NAME",
      description = "What --scale-search weighted weighs errors by: hessian (default where the statistics have it), the "
          + "correlations within blocks of 16 columns, or diagonal, each column's mean square.")
  private String weighting;

  @Option(names = "--gptq-damping", paramLabel = "SHARE",
      description = "What --scale-search gptq adds to the diagonal of a Hessian, in units of its mean (default: 0.05).")
  private Double damping;

  @Spec(Target.MIXEE)
  private CommandSpec spec;

  /**
   * The statistics; null where there are none.
   *
   * @param search how scales are chosen, as {@code --scale-search} has it
   * @throws IllegalArgumentException if they are not of this model
   */
  Statistics statistics(Configuration conf, Checkpoint source, ModelFamily family, String search) throws IOException {
    boolean gptq = search.equals(PlanOptions.GPTQ);
    boolean weighted = gptq || search.equals(ScaleSearch.WEIGHTED.optionName());
    require(inputScale == null || folder != null,
        "Invalid --input-scale: there is nothing to make scales of without --statistics");
    require(!weighted || folder != null,
        "Invalid --scale-search: " + search + " weighs errors by statistics; give --statistics DIR, which calibrate makes");
    require(weighting == null || weighted, "Invalid --weighting: only --scale-search weighted and gptq weigh errors");
    require(damping == null || gptq, "Invalid --gptq-damping: only --scale-search gptq has a Hessian to add to");
    require(damping == null || damping > 0 && damping <= 1,
        "Invalid --gptq-damping: " + damping + ", must be above 0 and at most 1");
    if (folder == null) {
      return null;
    }

    Path path = new Path(folder);
    Statistics statistics = Statistics.open(conf, RawFileSystem.of(path, conf).makeQualified(path));
    statistics.requireOf(new ModelModules(source, family));
    return statistics;
  }

  private void require(boolean holds, String message) {
    if (!holds) {
      throw new ParameterException(spec.commandLine(), message);
    }
  }

  /** How they are used, as a plan has it; null where there are none. */
  StatisticsOptions options(Statistics statistics, boolean weightOnly, String search) {
    if (statistics == null) {
      return null;
    }

    boolean gptq = search.equals(PlanOptions.GPTQ);
    boolean weighted = gptq || search.equals(ScaleSearch.WEIGHTED.optionName());
    return new StatisticsOptions(
        statistics.digest(), weightOnly ? null : rule().optionName(),
        weighted ? weighting(statistics).optionName() : null,
        gptq ? Double.valueOf(damping == null ? DAMPING : damping) : null);
  }

  /** The amax of layers' inputs; null where there are no statistics. */
  InputAmaxes amaxes(Statistics statistics) {
    return statistics == null ? null : new InputAmaxes(statistics.index(), rule());
  }

  /** The plan with what its errors are weighed by, if they are. */
  QuantizationPlan weighed(Configuration conf, QuantizationPlan plan, Statistics statistics) throws IOException {
    if (plan.options().search() != ScaleSearch.WEIGHTED) {
      return plan;
    }

    ImportanceFinder finder = new ImportanceFinder(
        conf, statistics.folder(), statistics.index(), weighting(statistics), plan.options().isGptq());
    return plan.withImportance(finder.find(plan));
  }

  private Weighting weighting(Statistics statistics) {
    if (weighting != null) {
      return option(() -> Weighting.named(weighting));
    }

    return HessianKind.named(statistics.index().hessian()) == HessianKind.NONE
        ? Weighting.DIAGONAL
        : Weighting.HESSIAN;
  }

  private InputScaleRule rule() {
    return inputScale == null ? InputScaleRule.AMAX : option(() -> InputScaleRule.named(inputScale));
  }

  /** A value that is none of those that an option takes is a mistake in the command line. */
  private <T> T option(Supplier<T> value) {
    try {
      return value.get();
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }
}
