package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.concurrent.Callable;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
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

  @Option(names = "--source", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the source checkpoint.")
  private String source;

  @Option(names = "--quantized", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the NVFP4 checkpoint.")
  private String quantized;

  @Option(names = "--sample", defaultValue = "0.05", paramLabel = "FRACTION",
      description = "Share of the layers that are quantized again and compared byte for byte, at least one "
          + "(default: ${DEFAULT-VALUE}).")
  private double sample;

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
    if (!(sample >= 0 && sample <= 1)) {
      throw new ParameterException(spec.commandLine(), "Invalid --sample: " + sample + " (must be between 0 and 1)");
    }

    SparkSession spark = Session.start("sparkfp4 verify " + quantized);
    Configuration conf = spark.sessionState().newHadoopConf();
    Checkpoint opened = Checkpoint.open(conf, source);
    VerificationResult result =
        new Verification(spark, opened, familyOption.families(conf), quantized, sample).run();
    if (layers) {
      result.layerLines().forEach(spec.commandLine().getOut()::println);
    }

    spec.commandLine().getOut().println(result.text());
    spec.commandLine().getOut().flush();
    return result.isGood() ? CommandLine.ExitCode.OK : DIFFERENCE;
  }
}
