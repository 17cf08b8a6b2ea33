package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.layouts.Layout;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.Planner;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Targets;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.sink.OutputFolder;
import org.sparkfp4.sink.ShardRecord;
import org.sparkfp4.sink.Storage;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code quantize}: a checkpoint in, an NVFP4 checkpoint out. */
@Command(
    name = "quantize",
    description = "Turns a mixture-of-experts checkpoint into an NVFP4 checkpoint.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class QuantizeCommand implements Callable<Integer> {
  @Option(
      names = "--input",
      required = true,
      paramLabel = "DIR",
      converter = FolderText.class,
      description = "Folder of the source checkpoint.")
  private String input;

  @Option(
      names = "--output",
      required = true,
      paramLabel = "DIR",
      converter = FolderText.class,
      description = "Folder of the new checkpoint.")
  private String output;

  @Option(
      names = "--layout",
      defaultValue = "modelopt",
      paramLabel = "NAME",
      description = "modelopt (default) or compressed-tensors.")
  private String layout;

  @Option(
      names = "--scale-search",
      defaultValue = "rtn",
      paramLabel = "NAME",
      description = "How block scales are chosen: rtn (default), from the block's largest weight; four-over-six; or "
          + "sweep, the least squared error of all scales.")
  private String scaleSearch;

  @Option(
      names = "--targets",
      defaultValue = "experts",
      paramLabel = "WHICH",
      description = "Layers to quantize: experts (default: the routed experts), mlp (shared experts and dense MLPs "
          + "too) or linears (attention too).")
  private String targets;

  @Mixin
  private SelectionOptions selection;

  @Mixin
  private FamilyOption familyOption;

  @Option(names = "--weight-only", description = "Leave activations in high precision (W4A16).")
  private boolean weightOnly;

  @Option(
      names = "--max-shard-size",
      paramLabel = "SIZE",
      description = "Largest output shard, such as 5GB; default: bytes out / 512, at least 256MiB, at most 5GB.")
  private ByteSize maxShardSize;

  @Mixin
  private DeviceOption device;

  @Option(names = "--dry-run", description = "Print the plan and stop: nothing is written.")
  private boolean dryRun;

  @Option(names = "--overwrite", description = "Replace what an earlier run with another plan left in the output.")
  private boolean overwrite;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    SparkSession spark = Session.start("sparkfp4 quantize " + input);
    RunSettings settings = RunSettings.of(spark);
    KernelChoice kernels = option(() -> device.over(settings.kernels()));
    Configuration conf = spark.sessionState().newHadoopConf();
    Path folder = qualified(conf, output);
    SeparateFolders.require(qualified(conf, input), folder);
    Storage storage = Storage.of(folder, conf, settings.commit());
    Checkpoint source = Checkpoint.open(conf, input);
    ModelFamily family = familyOption.family(conf, source.config());
    QuantizationPlan plan = plan(settings, source, family);
    print(PlanSummary.of(plan, family).text());
    if (dryRun) {
      return CommandLine.ExitCode.OK;
    }

    KernelProbe.require(spark, kernels);
    OutputFolder out = new OutputFolder(storage.fs(), folder);
    ResumeHint hint = new ResumeHint(spec.commandLine().getErr(), ResumeHint.command(spec));
    try {
      List<ShardRecord> records = new QuantizeJob(spark, source, family, plan, out, kernels).run(overwrite);
      print(QuantizeResult.of(plan, records).text(folder) + System.lineSeparator());
      return CommandLine.ExitCode.OK;
    } finally {
      hint.close();
    }
  }

  private void print(String text) {
    spec.commandLine().getOut().print(text);
    spec.commandLine().getOut().flush();
  }

  private QuantizationPlan plan(RunSettings settings, Checkpoint source, ModelFamily family) {
    PlanOptions options =
        new PlanOptions(
            layout().name(), scaleSearch(), targets(), weightOnly, maxShardSize == null ? 0 : maxShardSize.bytes(),
            selection.selection());
    return new Planner(source, family, layout(), options, settings.unitBytes()).plan();
  }

  private Layout layout() {
    return option(() -> Layouts.named(layout));
  }

  private String targets() {
    return option(() -> Targets.named(targets).optionName());
  }

  private String scaleSearch() {
    if (option(() -> ScaleSearch.named(scaleSearch)) == ScaleSearch.WEIGHTED) {
      throw new ParameterException(
          spec.commandLine(), "Invalid --scale-search: weighted; this version has no --statistics for it");
    }

    return scaleSearch;
  }

  /** A value that is none of those that an option takes is a mistake in the command line. */
  private <T> T option(Supplier<T> value) {
    try {
      return value.get();
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  private static Path qualified(Configuration conf, String folder) throws IOException {
    Path path = new Path(folder);
    return RawFileSystem.of(path, conf).makeQualified(path);
  }
}
