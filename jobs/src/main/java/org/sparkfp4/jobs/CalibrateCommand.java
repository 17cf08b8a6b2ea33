package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.calibration.ActivationFiles;
import org.sparkfp4.calibration.ActivationTable;
import org.sparkfp4.calibration.Calibration;
import org.sparkfp4.calibration.HessianKind;
import org.sparkfp4.calibration.ModelModules;
import org.sparkfp4.calibration.StatisticsSummary;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.Storage;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.tables.SourceTable;
import picocli.CommandLine;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code calibrate}: activations in, the statistics that scales are chosen by out. */
@Command(
    name = "calibrate",
    description = "Sums up activations of a model's linear layers, for quantize --statistics.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class CalibrateCommand implements Callable<Integer> {
  @ArgGroup(multiplicity = "1")
  private Activations activations;

  /** Where activations are. */
  private static final class Activations {
    @Option(names = "--input", paramLabel = "DIR", converter = FolderText.class,
        description = "Folder of safetensors files, or one such file: tensors <module>.input [tokens, K], and for "
            + "experts that share an input <mlp>.input with <mlp>.routing [tokens, top_k].")
    private String input;

    @Option(names = "--table", paramLabel = "FORMAT:PATH",
        description = "Instead, a table that Spark reads, such as parquet:/data/activations: columns module, token, "
            + "values (ARRAY<FLOAT>, or BINARY with a column dtype), and experts where an input is that of experts.")
    private String table;
  }

  @Option(names = "--output", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder for the statistics.")
  private String output;

  @Option(names = "--model", paramLabel = "DIR", converter = FolderText.class,
      description = "The model's checkpoint: its layers are held against the activations', and name the experts of a "
          + "routing.")
  private String model;

  @Option(names = "--hessian", defaultValue = "local", paramLabel = "NAME",
      description = "What to keep of the inputs' correlations: none, local (default: within blocks of 16 columns, for "
          + "--scale-search weighted) or full (for gptq; K x K values a layer).")
  private String hessian;

  @Mixin
  private FamilyOption familyOption;

  @Option(names = "--overwrite", description = "Replace statistics of other activations in the output.")
  private boolean overwrite;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    HessianKind kind = OptionValue.of(spec, () -> HessianKind.named(hessian));
    if (activations.table != null) {
      OptionValue.of(spec, () -> SourceTable.requireName(activations.table));
    }

    SparkSession spark = Session.start("sparkfp4 calibrate");
    RunSettings settings = RunSettings.of(spark);
    String tier = settings.kernels().tier();
    if (kind == HessianKind.FULL) {
      KernelProbe.require(spark, KernelChoice.cpu(tier));
    }

    Configuration conf = spark.sessionState().newHadoopConf();
    Path folder = RawFileSystem.qualified(conf, output);
    if (activations.input != null) {
      SeparateFolders.require(RawFileSystem.qualified(conf, activations.input), folder);
    }

    Storage storage = Storage.of(folder, conf, settings.commit());
    Calibration calibration = new Calibration(
        spark,
        activations.input != null
            ? new ActivationFiles(spark, activations.input)
            : new ActivationTable(spark, activations.table),
        model(conf), kind, settings.commit(), tier, "Spark FP4 " + Version.current());
    ProgressView view = ProgressView.of(verbosity.progress(settings.progress()));
    try {
      spec.commandLine().getOut()
          .print(new StatisticsSummary(calibration.run(storage.fs(), folder, overwrite, view)).text());
      spec.commandLine().getOut().flush();
      return CommandLine.ExitCode.OK;
    } catch (BadSourceException e) {
      throw new JobException(e.getMessage());
    }
  }

  private ModelModules model(Configuration conf) throws IOException {
    if (model == null) {
      return null;
    }

    Checkpoint checkpoint = Checkpoint.open(conf, model);
    return new ModelModules(checkpoint, familyOption.family(conf, checkpoint));
  }
}
