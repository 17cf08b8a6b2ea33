package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.ModelFamilies;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.keys.CachedKeys;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.report.ExpertLoad;
import org.sparkfp4.report.ReportFiles;
import org.sparkfp4.report.RunReport;
import org.sparkfp4.report.Stages;
import org.sparkfp4.verify.ManifestResult;
import org.sparkfp4.verify.ManifestVerification;
import org.sparkfp4.verify.SampleSize;
import org.sparkfp4.verify.Verification;
import org.sparkfp4.verify.VerificationResult;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code verify}: a quantized checkpoint read once more, beside its source. */
@Command(
    name = "verify",
    description = "Reads a quantized checkpoint beside its source and looks for differences.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class VerifyCommand implements Callable<Integer> {
  /** Exit status where the checkpoint is not what it should be. */
  static final int DIFFERENCE = 3;

  @Option(names = "--source", paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the source checkpoint.")
  private String source;

  @Option(names = "--quantized", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the NVFP4 checkpoint.")
  private String quantized;

  @Option(names = "--sample", paramLabel = "N|P%",
      description = "Layers that are quantized again and compared byte for byte, at least one (default: 5%% of a "
          + "checkpoint with a manifest, 100%% of another).")
  private String sample;

  @Option(names = "--manifest", description = "Only hold every file against the manifest's digests; with --source its "
      + "files too. Nothing is decoded.")
  private boolean manifest;

  @Option(names = "--statistics", paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the statistics that were used; the report shows the tokens of experts.")
  private String statistics;

  @Mixin
  private ReportOption reportOption;

  @Option(names = "--layers", description = "Print the relative error of every layer.")
  private boolean layers;

  @Mixin
  private FamilyOption familyOption;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    SampleSize size = sampleSize();
    if (source == null && !manifest) {
      throw new ParameterException(
          spec.commandLine(), "Missing required option: '--source=DIR' (or --manifest, to look at digests only)");
    }

    if (manifest && (sample != null || statistics != null || layers || reportOption.isGiven())) {
      throw new ParameterException(
          spec.commandLine(),
          "Invalid --manifest: it decodes nothing, so there is nothing for --sample, --statistics, --layers or "
              + "--report to say");
    }

    Stages stages = new Stages();
    SparkSession spark = Session.start("sparkfp4 verify " + quantized);
    ProgressView view = ProgressView.of(verbosity.progress(RunSettings.of(spark).progress()));
    if (manifest) {
      ManifestResult result = new ManifestVerification(spark, quantized, source).run(view);
      return end(result.text(), result.isGood());
    }

    Configuration conf = spark.sessionState().newHadoopConf();
    if (CachedKeys.isCache(conf, quantized)) {
      throw new JobException("Cannot hold " + quantized + " against a checkpoint: it is a cache of keys; give it to "
          + "verify-keys --source … --cache " + quantized);
    }

    ReportFiles files = reportOption.files(
        spec, conf, RawFileSystem.qualified(conf, source), RawFileSystem.qualified(conf, quantized));
    ExpertLoad load = statistics == null ? null : ExpertLoad.read(conf, statistics);
    Checkpoint opened = Checkpoint.open(conf, source);
    ModelFamilies families = familyOption.families(conf);
    stages.end("start and read headers", 0, 0);
    VerificationResult result = new Verification(spark, opened, families, quantized, size).run(view);
    stages.end("read, decode and compare", result.bytes() + bytes(opened), 0);
    RunReport report = RunReport.ofVerify(
        Version.product(), opened, family(families, opened), result, quantized, load, stages);
    if (files != null) {
      files.write(report, spark);
    }

    if (layers) {
      result.layerLines().forEach(spec.commandLine().getOut()::println);
    }

    return end(report.outlierText() + report.warningText() + result.text(), result.isGood());
  }

  private static long bytes(Checkpoint checkpoint) {
    return checkpoint.tensors().stream().mapToLong(LocatedTensor::length).sum();
  }

  /** The source's family, or null where its config.json names none that is known. */
  private static ModelFamily family(ModelFamilies families, Checkpoint source) {
    return source.config().isObject() ? families.find(new ModelConfig(source.config())).orElse(null) : null;
  }

  private int end(String text, boolean good) {
    spec.commandLine().getOut().println(text);
    spec.commandLine().getOut().flush();
    return good ? CommandLine.ExitCode.OK : DIFFERENCE;
  }

  /** Null where nothing is said. */
  private SampleSize sampleSize() {
    return OptionValue.of(spec, () -> sample == null ? null : SampleSize.parse(sample));
  }
}
