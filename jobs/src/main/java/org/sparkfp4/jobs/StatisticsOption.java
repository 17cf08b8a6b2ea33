package org.sparkfp4.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.calibration.ImportanceFinder;
import org.sparkfp4.calibration.InputScaleRule;
import org.sparkfp4.calibration.MeasuredAmaxes;
import org.sparkfp4.calibration.ModelModules;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.Weighting;
import org.sparkfp4.plan.InputAmaxes;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.StatisticsOptions;
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
      description = "What --scale-search weighted weighs errors by: diagonal (default), the mean square of each input "
          + "channel, or hessian (default of gptq), the products of the 16 channels of a block.")
  private String weighting;

  @Option(names = "--gptq-damping", paramLabel = "SHARE",
      description = "What --scale-search gptq adds to the diagonal of a Hessian, in units of its mean (default: 0.05).")
  private Double damping;

  @Spec(Target.MIXEE)
  private CommandSpec spec;

  /** Holds the options against a search: only weighted ones weigh, and only with statistics. */
  void requireFor(String search) {
    boolean gptq = search.equals(PlanOptions.GPTQ);
    boolean weighs = weighs(search);
    require(!weighs || folder != null, "Invalid --scale-search: " + search + " takes what calibrate found out; give "
        + "its folder by --statistics, or choose sweep");
    require(weighs || weighting == null,
        "Invalid --weighting: " + weighting + ", but --scale-search is " + search + ", not weighted");
    require(gptq || damping == null, "Invalid --gptq-damping: " + damping + ", but --scale-search is " + search
        + ", not gptq");
    require(damping == null || damping > 0 && damping <= 1,
        "Invalid --gptq-damping: " + damping + ", must be above 0 and at most 1");
    require(inputScale == null || folder != null,
        "Invalid --input-scale: there is nothing to make scales of without --statistics");
    weighting(search);
    rule();
  }

  private static boolean weighs(String search) {
    return search.equals(PlanOptions.GPTQ) || search.equals(ScaleSearch.WEIGHTED.optionName());
  }

  private void require(boolean holds, String message) {
    if (!holds) {
      throw new ParameterException(spec.commandLine(), message);
    }
  }

  /**
   * The statistics; null where there are none.
   *
   * @throws IllegalArgumentException if they are not of this model
   */
  Statistics statistics(Configuration conf, Checkpoint source, ModelFamily family) throws IOException {
    if (folder == null) {
      return null;
    }

    Statistics statistics = Statistics.open(conf, RawFileSystem.qualified(conf, folder));
    statistics.requireOf(new ModelModules(source, family));
    return statistics;
  }

  /** How they are used, as a plan has it; null where there are none. */
  StatisticsOptions options(Statistics statistics, boolean weightOnly, String search) {
    return statistics == null
        ? null
        : new StatisticsOptions(
            statistics.digest(), weightOnly ? null : rule().optionName(),
            weighs(search) ? weighting(search).optionName() : null,
            search.equals(PlanOptions.GPTQ) ? damping() : null);
  }

  private Double damping() {
    return damping == null ? Double.valueOf(DAMPING) : damping;
  }

  /** The amax of layers' inputs; null where there are no statistics. */
  InputAmaxes amaxes(Statistics statistics) {
    return statistics == null ? null : new MeasuredAmaxes(statistics.index(), rule());
  }

  /** The plan with what its search weighs errors by, if it weighs them. */
  QuantizationPlan weigh(Configuration conf, QuantizationPlan plan, Statistics statistics) throws IOException {
    String search = plan.options().scaleSearch();
    if (!weighs(search)) {
      return plan;
    }

    ImportanceFinder finder = new ImportanceFinder(
        conf, statistics.folder(), statistics.index(), weighting(search), plan.options().isGptq());
    return plan.withImportance(finder.find(plan));
  }

  private Weighting weighting(String search) {
    if (weighting == null) {
      return search.equals(PlanOptions.GPTQ) ? Weighting.HESSIAN : Weighting.DIAGONAL;
    }

    return OptionValue.of(spec, () -> Weighting.named(weighting));
  }

  private InputScaleRule rule() {
    return inputScale == null ? InputScaleRule.AMAX : OptionValue.of(spec, () -> InputScaleRule.named(inputScale));
  }
}
