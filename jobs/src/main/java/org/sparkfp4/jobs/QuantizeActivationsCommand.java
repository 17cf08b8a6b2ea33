package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.calibration.ActivationFiles;
import org.sparkfp4.calibration.InputScaleRule;
import org.sparkfp4.calibration.MeasuredAmaxes;
import org.sparkfp4.calibration.Statistics;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.layouts.ActivationLayout;
import org.sparkfp4.output.ActivationPublisher;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.StagingFolder;
import org.sparkfp4.output.Storage;
import org.sparkfp4.plan.ActivationPlanner;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.plan.InputAmaxes;
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
  private static final String SAFETENSORS = ".safetensors";

  @Option(names = "--input", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of safetensors files, or one such file, with tensors <module>.input [tokens, K]. Files of "
          + "the same names, a batch each, become folders of their own in the output.")
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
    InputAmaxes known = statistics == null
        ? null
        : new MeasuredAmaxes(Statistics.open(conf, new Path(statistics)).index(), rule);
    List<Batch> batches = new ArrayList<>();
    List<Checkpoint> files = Checkpoint.openFiles(conf, input);
    if (repeatNames(files)) {
      requireNoOther(new OutputFolder(storage.fs(), folder));
      files.forEach(file -> batches.add(batch(List.of(file), ChildPath.of(folder, stem(file)), layout, settings, known)));
    } else {
      batches.add(batch(files, folder, layout, settings, known));
    }

    KernelProbe.require(spark, settings.kernels());
    ResumeHint hint = new ResumeHint(spec);
    try {
      List<QuantizeJob> jobs = new ArrayList<>();
      for (Batch batch : batches) {
        OutputFolder out = new OutputFolder(storage.fs(), batch.folder());
        ActivationPublisher publisher = new ActivationPublisher(out, batch.plan(), Version.product());
        jobs.add(new QuantizeJob(
            spark, batch.plan(), out, layout.recipe(), settings.kernels(), batch.amaxByUnit(),
            verbosity.progress(settings.progress()), new Stages(), publisher::publish));
      }

      // of all outputs before the first is written
      for (QuantizeJob job : jobs) {
        job.requireOutput(overwrite);
      }

      for (int i = 0; i < jobs.size(); i++) {
        tell(batches.get(i), jobs.get(i).run(overwrite));
      }

      return CommandLine.ExitCode.OK;
    } finally {
      hint.close();
    }
  }

  /**
   * What becomes one output.
   *
   * @param amax of the modules that statistics tell of
   * @param uncalibrated the modules of which they do not
   */
  private record Batch(QuantizationPlan plan, Path folder, Map<String, Float> amax, List<String> uncalibrated) {
    Map<Integer, Float> amaxByUnit() {
      Map<Integer, Float> units = new TreeMap<>();
      plan.shards().stream().flatMap(shard -> shard.units().stream()).forEach(unit -> {
        Float known = amax.get(unit.members().get(0).module());
        if (known != null) {
          units.put(unit.id(), known);
        }
      });
      return units;
    }
  }

  private Batch batch(
      List<Checkpoint> files, Path folder, ActivationLayout layout, RunSettings settings, InputAmaxes known) {
    List<String> uncalibrated = new ArrayList<>();
    Map<String, Float> amax = known == null ? Map.of() : amax(known, files, uncalibrated);
    PlanOptions options = new PlanOptions(
        layout.name(), ScaleSearch.RTN.optionName(), ActivationPlanner.TARGETS, false,
        maxShardSize == null ? 0 : maxShardSize.bytes());
    QuantizationPlan plan = new ActivationPlanner(files, layout, options, settings.unitBytes(), amax).plan();
    return new Batch(plan, folder, amax, uncalibrated);
  }

  /** Recordings come in batches, files with the same names; an output has one tensor of each. */
  private static boolean repeatNames(List<Checkpoint> files) {
    Set<String> names = new HashSet<>();
    return files.stream().flatMap(file -> file.tensors().stream()).anyMatch(tensor -> !names.add(tensor.name()));
  }

  /** What the folder of a file's output is called: one that lies in the output's, and is no part of a run's own. */
  private static String stem(Checkpoint file) {
    Path path = file.shards().get(0).getPath();
    String name = path.getName();
    String stem = name.substring(0, name.length() - SAFETENSORS.length());
    if (stem.isEmpty() || stem.equals(".") || stem.equals("..") || stem.equals(StagingFolder.NAME)) {
      throw new JobException("Cannot write an output of " + path + ": its folder would be called \"" + stem
          + "\"; rename the file");
    }

    return stem;
  }

  /** An output for all files together would lie among those for each. */
  private static void requireNoOther(OutputFolder output) throws IOException {
    if (output.manifest() != null) {
      throw new JobException("Cannot write to " + output.path() + ": it holds a checkpoint, and files of the same names "
          + "get a folder in it each; choose another folder");
    }
  }

  private static Map<String, Float> amax(InputAmaxes known, List<Checkpoint> files, List<String> uncalibrated) {
    Map<String, Float> amax = new TreeMap<>();
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

  private void tell(Batch batch, List<ShardRecord> records) {
    PrintWriter out = spec.commandLine().getOut();
    batch.plan().kept().forEach(kept -> out.printf("carried over %s: %s%n", kept.module(), kept.reason()));
    batch.uncalibrated().forEach(module ->
        out.printf("no statistics of %s: its scale is that of its own largest magnitude%n", module));
    out.println(QuantizeResult.of(batch.plan(), records).text(batch.folder()));
    out.flush();
  }
}
