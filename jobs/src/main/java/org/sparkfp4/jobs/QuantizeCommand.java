package org.sparkfp4.jobs;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.calibration.StatisticsCheck;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.convert.ConvertRequest;
import org.sparkfp4.convert.StagedConversion;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.output.CheckpointPublisher;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.Storage;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.Planner;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Targets;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.report.ExpertLoad;
import org.sparkfp4.report.ReportFiles;
import org.sparkfp4.report.RunReport;
import org.sparkfp4.report.Stages;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
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
      description = "modelopt (default), compressed-tensors, or one that stacks the routed experts for a runtime: "
          + "trt-edge-llm-sm110, trt-edge-llm-sm12x, blackwell-moe, marlin-edge, marlin-vllm, cublas-128x4, scales-8x4 or "
          + "trtllm-gen.")
  private String layout;

  @Mixin
  private InitializerNamesOption initializerNames;

  @Option(
      names = "--scale-search",
      defaultValue = "sweep",
      paramLabel = "NAME",
      description = "How block scales are chosen: sweep (default), the least squared error of all scales; "
          + "four-over-six, the better of two; rtn, by the block's largest weight, the producers' own bytes; with "
          + "--statistics, weighted, the least error of the layer's outputs, or gptq, which lets the codes of a row "
          + "make up for each other's errors too.")
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

  @Mixin
  private StatisticsOption statisticsOption;

  @Option(names = "--weight-only", description = "Leave activations in high precision (W4A16).")
  private boolean weightOnly;

  @Option(
      names = "--keep-source-precision",
      description = "Leave what the source stores in FP8, INT4 or MXFP4 and is not quantized as it is stored; else it "
          + "becomes BF16.")
  private boolean keepSourcePrecision;

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
  private ReportOption reportOption;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    statisticsOption.requireFor(scaleSearch());
    layout();
    targets();
    ConvertRequest request = request();
    Stages stages = new Stages();
    SparkSession spark = Session.start("sparkfp4 quantize " + input);
    RunSettings settings = RunSettings.of(spark);
    KernelChoice kernels = OptionValue.of(spec, () -> device.over(settings.kernels()));
    Configuration conf = spark.sessionState().newHadoopConf();
    Path folder = RawFileSystem.qualified(conf, output);
    SeparateFolders.require(RawFileSystem.qualified(conf, input), folder);
    ReportFiles report = reportOption.files(spec, conf, RawFileSystem.qualified(conf, input), folder);
    Storage storage = Storage.of(folder, conf, settings.commit());
    Checkpoint source = Checkpoint.open(conf, input);
    ModelFamily family = familyOption.family(conf, source);
    Statistics statistics = statisticsOption.statistics(conf, source, family);
    QuantizationPlan plan =
        statisticsOption.weigh(conf, plan(settings, source, family, statistics), statistics);
    OutputFolder out = new OutputFolder(storage.fs(), folder);
    // shards of a layout with stacked experts are made by a second step, from those of the first
    StagedConversion conversion = ExpertLayout.named(layout).isEmpty()
        ? null
        : StagedConversion.of(plan, (ObjectNode) source.config(), request, out, conf);
    PlanSummary ofShards = PlanSummary.of(plan, family);
    PlanSummary summary = conversion == null ? ofShards : conversion.summary(ofShards);
    if (conversion == null) {
      out.requireFor(plan, overwrite, conf);
    } else {
      conversion.requireOutput(overwrite);
    }

    // a plan is the result of a dry run, and elsewhere no more than what leads to it
    print(verbosity.quiet && !dryRun
        ? summary.warningText()
        : summary.text() + (conversion == null ? "" : conversion.room()));
    if (dryRun) {
      return CommandLine.ExitCode.OK;
    }

    stages.end("start, read headers and plan", 0, 0);
    KernelProbe.require(spark, kernels);
    if (conversion != null && conversion.isComplete()) {
      print(folder + " is complete: nothing to do" + System.lineSeparator());
      return CommandLine.ExitCode.OK;
    }

    if (plan.importance() != null) {
      new StatisticsCheck(spark, statistics).require(plan.importance());
    }

    ResumeHint hint = new ResumeHint(spec);
    try {
      OutputFolder shards = conversion == null ? out : conversion.staged();
      CheckpointPublisher publisher =
          new CheckpointPublisher(shards, source, family, plan, layout(), Version.product());
      ExpertLoad load = statistics == null ? null : ExpertLoad.read(conf, statistics.folder().toString());
      CheckpointPublication publication = new CheckpointPublication(spark, plan, publisher, stages);
      String progress = verbosity.progress(settings.progress());
      QuantizeJob job = new QuantizeJob(
          spark, plan, shards, layout().recipe(), kernels, Map.of(), progress, stages, publication);
      List<ShardRecord> records = new ArrayList<>();
      if (conversion == null) {
        records.addAll(job.run(overwrite));
      } else {
        String kept = conversion.run(
            spark, () -> records.addAll(job.run(false)), overwrite, settings.commit(), kernels,
            Version.product(), ProgressView.of(progress));
        stages.end("arrange experts in layout " + layout, 0, 0);
        print(kept + System.lineSeparator());
      }

      RunReport told = RunReport.ofQuantize(
          Version.product(), plan, summary, family, records, folder.toString(), load, stages);
      // of a checkpoint that was finished before, its own run's report stays, unless that ended before it had written one
      if (conversion != null || publication.isDone() || !out.fs().exists(out.report())) {
        AtomicFile.write(out.fs(), out.report(), told.json());
      }

      if (report != null) {
        report.write(told, spark);
      }

      QuantizeResult shown = QuantizeResult.of(plan, records);
      if (conversion != null) {
        shown = shown.as(conversion.files(), conversion.dataBytes());
      }

      print(shown.text(folder) + System.lineSeparator());
      print(told.warningText());
      print(GptqOutcome.of(plan, records).text());
      return CommandLine.ExitCode.OK;
    } finally {
      hint.close();
    }
  }

  private ConvertRequest request() {
    return OptionValue.of(spec, () -> new ConvertRequest(
        layout, initializerNames.file(), maxShardSize == null ? 0 : maxShardSize.bytes()));
  }

  private void print(String text) {
    spec.commandLine().getOut().print(text);
    spec.commandLine().getOut().flush();
  }

  private QuantizationPlan plan(
      RunSettings settings, Checkpoint source, ModelFamily family, Statistics statistics) {
    PlanOptions options =
        new PlanOptions(
            layout().name(), scaleSearch(), targets(), weightOnly, maxShardSize == null ? 0 : maxShardSize.bytes(),
            selection.selection(), keepSourcePrecision,
            statisticsOption.options(statistics, weightOnly, scaleSearch()));
    return new Planner(
        source, family, layout(), options, settings.unitBytes(), statisticsOption.amaxes(statistics)).plan();
  }

  private Layout layout() {
    return OptionValue.of(spec, () -> Layouts.named(layout));
  }

  private String targets() {
    return OptionValue.of(spec, () -> Targets.named(targets).optionName());
  }

  private String scaleSearch() {
    return scaleSearch.equals(PlanOptions.GPTQ)
        ? scaleSearch
        : OptionValue.of(spec, () -> ScaleSearch.named(scaleSearch)).optionName();
  }
}
