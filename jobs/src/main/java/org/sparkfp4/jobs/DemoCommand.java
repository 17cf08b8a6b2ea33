package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.jobs.synthetic.ModelSizing;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.verify.Verification;
import org.sparkfp4.verify.VerificationResult;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code demo}: all of it at once, on a small checkpoint of its own. */
@Command(
    name = "demo",
    description = "Makes a small mixture-of-experts checkpoint, quantizes it and verifies the result.",
    mixinStandardHelpOptions = true)
final class DemoCommand implements Callable<Integer> {
  private static final SyntheticFamily FAMILY = SyntheticFamily.QWEN3_MOE;
  private static final long BYTES = 128 << 20;
  private static final long SHARD_BYTES = 32 << 20;
  private static final long QUANTIZED_SHARD_BYTES = 8 << 20;

  @Option(names = "--output", defaultValue = "sparkfp4-demo", paramLabel = "DIR", converter = FolderText.class,
      description = "Folder for both checkpoints (default: ${DEFAULT-VALUE}). What an earlier demo made there is kept.")
  private String output;

  @Mixin
  private DeviceOption device;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    PrintWriter out = spec.commandLine().getOut();
    SparkSession spark = Session.start("sparkfp4 demo");
    Configuration conf = spark.sessionState().newHadoopConf();
    Path source = new Path(output, "source");
    Path quantized = new Path(output, "nvfp4");

    out.printf("1. A source: a small %s checkpoint of random weights, in %s%n", FAMILY, source);
    out.flush();
    make(spark, conf, source);
    Checkpoint checkpoint = Checkpoint.open(conf, source.toString());
    out.printf("2. NVFP4: its experts quantized, in %s%n", quantized);
    out.flush();
    int status = quantize(source, quantized, isOfDemo(conf, quantized, source));
    if (status != CommandLine.ExitCode.OK) {
      return status;
    }

    out.printf("3. Verification: every byte read once more, by the reference in Java%n");
    out.flush();
    VerificationResult result = new Verification(spark, checkpoint, quantized.toString(), null).run();
    out.println(result.text());
    out.println();
    out.println(summary(checkpoint, quantized, conf, result));
    out.flush();
    return result.isGood() ? CommandLine.ExitCode.OK : VerifyCommand.DIFFERENCE;
  }

  /** Makes the source; one that an earlier demo finished is kept, and whatever else has its name. */
  private static void make(SparkSession spark, Configuration conf, Path folder) throws IOException {
    FileSystem fs = RawFileSystem.of(folder, conf);
    if (fs.exists(new Path(folder, CheckpointIndex.NAME))) {
      return;
    }

    if (fs.exists(folder)) {
      throw new JobException("Cannot make a checkpoint in " + fs.makeQualified(folder)
          + ": there is something already that no demo made; choose another --output");
    }

    // only under this name, which nobody else gives, may what is there be half of a checkpoint and be removed
    Path unfinished = new Path(folder.getParent(), ".sparkfp4-demo-unfinished");
    fs.delete(unfinished, true);
    new SyntheticCheckpoint(FAMILY, ModelSizing.fit(FAMILY, BYTES, DType.BF16), DType.BF16, 0, SHARD_BYTES)
        .write(spark, unfinished);
    if (!fs.rename(unfinished, folder)) {
      throw new JobException("Cannot rename " + fs.makeQualified(unfinished) + " to " + fs.makeQualified(folder)
          + ": the file system refused without a reason; choose another --output");
    }
  }

  /** Whether the output is one that an earlier demo made or began: what was made of an older source is replaced. */
  private static boolean isOfDemo(Configuration conf, Path quantized, Path source) throws IOException {
    FileSystem fs = RawFileSystem.of(quantized, conf);
    OutputFolder output = new OutputFolder(fs, fs.makeQualified(quantized));
    String input = fs.makeQualified(source).toString();
    if (output.manifest() != null) {
      return output.manifest().input().equals(input);
    }

    QuantizationPlan begun = output.staging().begun(conf);
    return begun != null && begun.input().equals(input);
  }

  /** The command as a user would give it. */
  private int quantize(Path source, Path quantized, boolean overwrite) {
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "quantize", "--input", source.toString(), "--output", quantized.toString(),
                "--max-shard-size", Long.toString(QUANTIZED_SHARD_BYTES)));
    arguments.addAll(device.arguments());
    if (overwrite) {
      arguments.add("--overwrite");
    }

    return Main.commandLine()
        .setOut(spec.commandLine().getOut())
        .setErr(spec.commandLine().getErr())
        .execute(arguments.toArray(new String[0]));
  }

  private static String summary(Checkpoint source, Path quantized, Configuration conf, VerificationResult result)
      throws IOException {
    long before = bytes(source);
    long after = bytes(Checkpoint.open(conf, quantized.toString()));
    Path folder = RawFileSystem.of(quantized, conf).makeQualified(quantized);
    return String.join(
        System.lineSeparator(),
        List.of(
            "The checkpoint    " + folder.toUri().getPath(),
            String.format("Size              %s in, %s out (%.2f of it)",
                ByteSize.format(before), ByteSize.format(after), (double) after / before),
            String.format("Relative error    %.4f over the quantized layers", result.relativeError()),
            "",
            "Next:",
            "  ./sparkfp4 inspect " + quantized,
            "  ./sparkfp4 quantize --input YOUR_CHECKPOINT --output YOUR_CHECKPOINT-NVFP4 --dry-run",
            "  ./sparkfp4 quantize --input YOUR_CHECKPOINT --output YOUR_CHECKPOINT-NVFP4",
            "  ./sparkfp4 verify --source YOUR_CHECKPOINT --quantized YOUR_CHECKPOINT-NVFP4"));
  }

  private static long bytes(Checkpoint checkpoint) {
    return checkpoint.tensors().stream().mapToLong(LocatedTensor::length).sum();
  }
}
