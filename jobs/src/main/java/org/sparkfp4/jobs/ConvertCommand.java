package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.convert.ConvertJob;
import org.sparkfp4.convert.ConvertRequest;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.Storage;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.progress.ProgressView;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code convert}: an NVFP4 checkpoint in, the same weights in another layout out. */
@Command(
    name = "convert",
    description = "Writes an NVFP4 checkpoint in another layout, without quantizing again.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class ConvertCommand implements Callable<Integer> {
  @Option(names = "--input", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of an NVFP4 checkpoint: ModelOpt's, compressed-tensors', or one that convert made.")
  private String input;

  @Option(names = "--to", required = true, paramLabel = "LAYOUT",
      description = "modelopt, compressed-tensors, trt-edge-llm-sm110, trt-edge-llm-sm12x, blackwell-moe, marlin-edge, "
          + "marlin-vllm, cublas-128x4, scales-8x4 or trtllm-gen.")
  private String target;

  @Option(names = "--output", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the new checkpoint.")
  private String output;

  @Mixin
  private InitializerNamesOption initializerNames;

  @Option(names = "--max-shard-size", paramLabel = "SIZE",
      description = "Largest output file, such as 5GB; default: bytes out / 512, at least 256MiB, at most 5GB. A container "
          + "is one file however large.")
  private ByteSize maxShardSize;

  @Mixin
  private DeviceOption device;

  @Option(names = "--dry-run", description = "Say what would be written and stop.")
  private boolean dryRun;

  @Option(names = "--overwrite", description = "Replace what an earlier run with another plan left in the output.")
  private boolean overwrite;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    ConvertRequest request = request();
    SparkSession spark = Session.start("sparkfp4 convert " + input);
    RunSettings settings = RunSettings.of(spark);
    KernelChoice kernels = ConvertJob.kernelsFor(OptionValue.of(spec, () -> device.onHost(settings.kernels())));
    Configuration conf = spark.sessionState().newHadoopConf();
    Path folder = RawFileSystem.qualified(conf, output);
    SeparateFolders.require(RawFileSystem.qualified(conf, input), folder);
    Storage storage = Storage.of(folder, conf, settings.commit());
    Checkpoint source = Checkpoint.open(conf, input);
    OutputFolder out = new OutputFolder(storage.fs(), folder);
    ConvertJob job = ConvertJob.plan(spark, source, request, out, settings.commit(), kernels, Version.product());
    job.requireOutput(overwrite);
    if (dryRun || !verbosity.quiet) {
      print(job.summary());
    }

    if (dryRun) {
      return CommandLine.ExitCode.OK;
    }

    KernelProbe.require(spark, kernels);
    ResumeHint hint = new ResumeHint(spec);
    try {
      print(folder + ": " + job.run(overwrite, ProgressView.of(verbosity.progress(settings.progress()))));
      return CommandLine.ExitCode.OK;
    } finally {
      hint.close();
    }
  }

  private ConvertRequest request() {
    return OptionValue.of(spec, () -> new ConvertRequest(
        target, initializerNames.file(), maxShardSize == null ? 0 : maxShardSize.bytes()));
  }

  private void print(String text) {
    spec.commandLine().getOut().println(text);
    spec.commandLine().getOut().flush();
  }
}
