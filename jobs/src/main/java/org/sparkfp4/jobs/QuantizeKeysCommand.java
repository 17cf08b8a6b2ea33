package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.keys.KeyJob;
import org.sparkfp4.keys.KeyOptions;
import org.sparkfp4.output.Storage;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.tables.SourceTable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code quantize-keys}: indexer keys in, a paged MXFP4 cache out. */
@Command(
    name = "quantize-keys",
    description = "Turns indexer keys into page images of an MXFP4 key cache.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class QuantizeKeysCommand implements Callable<Integer> {
  @Option(names = "--input", paramLabel = "PATH", converter = FolderText.class,
      description = "A safetensors file, or a folder of them, with LAYER.index_k and what goes with it; may be "
          + "repeated. Beside --table: the files that have the norms.")
  private List<String> inputs = new ArrayList<>();

  @Option(names = "--table", paramLabel = "FORMAT:PATH",
      description = "A table that Spark reads, such as parquet:/data/keys, with columns layer, slot and key.")
  private String table;

  @Option(names = "--key-type", paramLabel = "TYPE", description = "Of a table's binary keys: BF16, F16 or F32.")
  private String keyType;

  @Option(names = "--output", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the cache.")
  private String output;

  @Option(names = "--page-tokens", defaultValue = "64", paramLabel = "N",
      description = "Tokens of a page: 64 (default) or 32.")
  private int pageTokens;

  @Option(names = "--pages", paramLabel = "N",
      description = "Pages of a layer; default: as many as its slots need.")
  private Long pages;

  @Option(names = "--eps", paramLabel = "X", description = "Epsilon of the norms; required where there are norms.")
  private Float eps;

  @Option(names = "--round-norm-to-bf16",
      description = "Round what norm and rotation give to BF16, as a chain of separate operations stores it.")
  private boolean roundNormToBf16;

  @Option(names = "--hadamard", description = "Rotate keys by the Hadamard transform times D^-1/2.")
  private boolean hadamard;

  @Option(names = "--scale-rule", defaultValue = "ceil", paramLabel = "NAME",
      description = "Of the block scales: ceil (default, vLLM's), floor, even or best-of-two.")
  private String scaleRule;

  @Mixin
  private DeviceOption device;

  @Option(names = "--model", defaultValue = "", paramLabel = "NAME",
      description = "The model's name, for the metadata.")
  private String model;

  @Option(names = "--dry-run", description = "Print the plan and stop: nothing is written.")
  private boolean dryRun;

  @Option(names = "--overwrite", description = "Replace what a run of other keys or options left in the output.")
  private boolean overwrite;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    KeyOptions options = options();
    SparkSession spark = Session.start("sparkfp4 quantize-keys " + output);
    RunSettings settings = RunSettings.of(spark);
    KernelChoice kernels = OptionValue.of(spec, () -> device.onHost(settings.kernels()));
    Configuration conf = spark.sessionState().newHadoopConf();
    Path folder = RawFileSystem.qualified(conf, output);
    for (String input : inputs) {
      SeparateFolders.require(RawFileSystem.qualified(conf, input), folder);
    }

    Storage storage = Storage.of(folder, conf, settings.commit());
    KeyJob job = KeyJob.plan(spark, inputs, table, keyType, options, storage.fs(), folder, settings.commit(),
        kernels, Version.product());
    job.requireOutput(overwrite);
    if (!dryRun) {
      KernelProbe.require(spark, kernels);
      ResumeHint hint = new ResumeHint(spec);
      try {
        job.run(overwrite, ProgressView.of(verbosity.progress(settings.progress())));
      } finally {
        hint.close();
      }
    }

    spec.commandLine().getOut().println(job.summary().text());
    spec.commandLine().getOut().flush();
    return CommandLine.ExitCode.OK;
  }

  private KeyOptions options() {
    require(table != null || !inputs.isEmpty(), "Missing --input or --table: where the keys are");
    if (table != null) {
      OptionValue.of(spec, () -> SourceTable.requireName(table));
    }

    require(table == null || keyType == null || keyType.matches("BF16|F16|F32"),
        "Invalid --key-type: " + keyType + " (must be BF16, F16 or F32)");
    require(table != null || keyType == null, "Invalid --key-type: " + keyType + " (only with --table)");
    require(pageTokens == 64 || pageTokens == 32, "Invalid --page-tokens: " + pageTokens + " (must be 64 or 32)");
    require(pages == null || pages > 0 && pages < Integer.MAX_VALUE,
        "Invalid --pages: " + pages + " (must be from 1 to " + (Integer.MAX_VALUE - 1) + ")");
    require(eps == null || eps > 0 && !eps.isInfinite(), "Invalid --eps: " + eps + " (must be positive and finite)");
    ScaleRule rule = OptionValue.of(spec, () -> ScaleRule.of(scaleRule));
    return new KeyOptions(pageTokens, pages == null ? 0 : pages, eps, roundNormToBf16, hadamard, rule, model);
  }

  private void require(boolean condition, String message) {
    if (!condition) {
      throw new ParameterException(spec.commandLine(), message);
    }
  }
}
