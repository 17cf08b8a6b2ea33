package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.calibration.ActivationFiles;
import org.sparkfp4.calibration.InputAmaxes;
import org.sparkfp4.calibration.InputScaleRule;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.layouts.ActivationLayout;
import org.sparkfp4.output.ActivationPublisher;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.Storage;
import org.sparkfp4.plan.ActivationPlanner;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.report.Stages;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code quantize-activations}: activation tensors in, NVFP4 tensors out. */
@Command(
    name = "quantize-activations",
    description = "Turns activation tensors <module>.input into NVFP4.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class QuantizeActivationsCommand implements Callable<Integer> {
  @Option(names = "--input", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of safetensors files, or one such file, with tensors <module>.input [tokens, K].")
  private String input;

  @Option(names = "--output", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder for <module>.input_packed, .input_scale and .input_global_scale.")
  private String output;

  @Option(names = "--layout", defaultValue = ActivationLayout.LINEAR, paramLabel = "NAME",
      description = "linear (default), block scales one after another; or trt-edge-llm, in words of four with bytes 1 and 2 "
          + "exchanged, as TensorRT Edge-LLM's NVFP4Tensor reads those of activations; K a multiple of 64.")
  private String layoutName;

  @Option(names = "--statistics", paramLabel = "DIR", converter = FolderText.class,
      description = "Statistics that calibrate made: their global scales, where they have the module, and not one of "
          + "each tensor's own amax.")
  private String statistics;

  @Option(names = "--input-scale", defaultValue = "amax", paramLabel = "RULE",
      description = "What of the statistics the scale is made of: amax (default), percentile or headroom.")
  private String inputScale;

  @Option(names = "--max-shard-size", paramLabel = "SIZE", description = "Largest output file, such as 5GB.")
  private ByteSize maxShardSize;

  @Option(names = "--overwrite", description = "Replace what an earlier run with another plan left in the output.")
  private boolean overwrite;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    InputScaleRule rule = OptionValue.of(spec, () -> InputScaleRule.named(inputScale));
    ActivationLayout layout = OptionValue.of(spec, () -> ActivationLayout.named(layoutName));
    SparkSession spark = Session.start("sparkfp4 quantize-activations " + input);
    RunSettings settings = RunSettings.of(spark);
    Configuration conf = spark.sessionState().newHadoopConf();
    Path folder = RawFileSystem.qualified(conf, output);
    SeparateFolders.require(RawFileSystem.qualified(conf, input), folder);
    Storage storage = Storage.of(folder, conf, settings.commit());
    List<Checkpoint> files = Checkpoint.openFiles(conf, input);
    List<String> uncalibrated = new ArrayList<>();
    Map<String, Float> amax = amax(conf, rule, files, uncalibrated);
    QuantizationPlan plan = new ActivationPlanner(
        files, layout,
        new PlanOptions(
            layout.name(), ScaleSearch.RTN.optionName(), ActivationPlanner.TARGETS, false,
            maxShardSize == null ? 0 : maxShardSize.bytes()),
        settings.unitBytes(), amax).plan();
    KernelProbe.require(spark, settings.kernels());
    OutputFolder out = new OutputFolder(storage.fs(), folder);
    ResumeHint hint = new ResumeHint(spec.commandLine().getErr(), ResumeHint.command(spec));
    try {
      ActivationPublisher publisher = new ActivationPublisher(out, plan, Version.product());
      List<ShardRecord> records =
          new QuantizeJob(
              spark, plan, out, layout.recipe(), settings.kernels(), byUnit(plan, amax),
              verbosity.progress(settings.progress()), new Stages(), publisher::publish)
              .run(overwrite);
      tell(plan, records, folder, uncalibrated);
      return CommandLine.ExitCode.OK;
    } finally {
      hint.close();
    }
  }

  /** The amax of the modules that statistics tell of. */
  private Map<String, Float> amax(
      Configuration conf, InputScaleRule rule, List<Checkpoint> files, List<String> uncalibrated) throws IOException {
    Map<String, Float> amax = new TreeMap<>();
    if (statistics == null) {
      return amax;
    }

    InputAmaxes known = new InputAmaxes(Statistics.open(conf, new Path(statistics)).index(), rule);
    for (Checkpoint file : files) {
      for (LocatedTensor tensor : file.tensors()) {
        if (tensor.name().endsWith(ActivationFiles.INPUT)) {
          String module = ActivationPlanner.module(tensor);
          Float own = known.own(List.of(module));
          Float found = own != null ? own : known.peers(List.of(module));
          if (found != null) {
            amax.put(module, found);
          } else {
            uncalibrated.add(module);
          }
        }
      }
    }

    return amax;
  }

  private static Map<Integer, Float> byUnit(QuantizationPlan plan, Map<String, Float> amax) {
    Map<Integer, Float> units = new TreeMap<>();
    plan.shards().stream().flatMap(shard -> shard.units().stream()).forEach(unit -> {
      Float known = amax.get(unit.members().get(0).module());
      if (known != null) {
        units.put(unit.id(), known);
      }
    });
    return units;
  }

  private void tell(QuantizationPlan plan, List<ShardRecord> records, Path folder, List<String> uncalibrated) {
    PrintWriter out = spec.commandLine().getOut();
    plan.kept().forEach(kept -> out.printf("carried over %s: %s%n", kept.module(), kept.reason()));
    uncalibrated.forEach(module ->
        out.printf("no statistics of %s: its scale is that of its own largest magnitude%n", module));
    out.println(QuantizeResult.of(plan, records).text(folder));
    out.flush();
  }
}
