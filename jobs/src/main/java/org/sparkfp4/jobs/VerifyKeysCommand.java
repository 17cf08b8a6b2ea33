package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.keys.KeyVerification;
import org.sparkfp4.keys.LayerVerification;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.tables.SourceTable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code verify-keys}: a cache of keys beside the keys that it was made from. */
@Command(
    name = "verify-keys",
    description = "Compares a cache of keys with its source: bytes, and the logits that an indexer makes of them; and "
        + "its files with the checksums that it records.",
    sortOptions = false,
    mixinStandardHelpOptions = true)
final class VerifyKeysCommand implements Callable<Integer> {
  @Option(names = "--source", paramLabel = "PATH", converter = FolderText.class,
      description = "A safetensors file, or a folder of them, that the cache was made from; may be repeated. Beside "
          + "--table: the files that have the norms.")
  private List<String> sources = new ArrayList<>();

  @Option(names = "--table", paramLabel = "FORMAT:PATH",
      description = "The table that the cache was made from, such as parquet:/data/keys.")
  private String table;

  @Option(names = "--key-type", paramLabel = "TYPE", description = "Of a table's binary keys: BF16, F16 or F32.")
  private String keyType;

  @Option(names = "--cache", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder of the cache, or one file of it.")
  private String cache;

  @Option(names = "--max-keys", defaultValue = "20000", paramLabel = "N",
      description = "Keys of a layer to compare; the rest of its file is held to the checksums that the cache "
          + "records (default: ${DEFAULT-VALUE}).")
  private int maxKeys;

  @Option(names = "--queries", defaultValue = "20", paramLabel = "N",
      description = "Random queries (default: ${DEFAULT-VALUE}).")
  private int queries;

  @Option(names = "--heads", defaultValue = "32", paramLabel = "N",
      description = "Heads of a query (default: ${DEFAULT-VALUE}).")
  private int heads;

  @Option(names = "--top-k", defaultValue = "2048", paramLabel = "N",
      description = "Tokens that the indexer chooses, half of the keys compared at most (default: ${DEFAULT-VALUE}).")
  private int topk;

  @Option(names = "--max-difference", defaultValue = "0.01", paramLabel = "X",
      description = "Largest difference of the logits, 1 - 2 sum(xy) / sum(xx + yy), that is good "
          + "(default: ${DEFAULT-VALUE}).")
  private double maxDifference;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  @Override
  public Integer call() throws IOException {
    require(table != null || !sources.isEmpty(), "Missing --source or --table: what the cache was made from");
    if (table != null) {
      OptionValue.of(spec, () -> SourceTable.requireName(table));
    }

    require(table == null || keyType == null || keyType.matches("BF16|F16|F32"),
        "Invalid --key-type: " + keyType + " (must be BF16, F16 or F32)");
    require(table != null || keyType == null, "Invalid --key-type: " + keyType + " (only with --table)");
    requirePositive("--max-keys", maxKeys);
    requirePositive("--queries", queries);
    requirePositive("--heads", heads);
    requirePositive("--top-k", topk);
    require(maxDifference >= 0 && !Double.isInfinite(maxDifference),
        "Invalid --max-difference: " + maxDifference + " (must be a finite number, 0 at least)");
    SparkSession spark = Session.start("sparkfp4 verify-keys " + cache);
    KeyVerification.Findings findings = new KeyVerification(
        spark, sources, table, keyType, cache, new KeyVerification.Settings(maxKeys, queries, heads, topk))
        .run(ProgressView.of(verbosity.progress(RunSettings.of(spark).progress())));
    boolean good = findings.absent().isEmpty();
    for (LayerVerification layer : findings.layers()) {
      spec.commandLine().getOut().println(layer.text());
      good &= layer.differing() == 0 && layer.damage().isEmpty() && layer.difference() <= maxDifference;
    }

    for (String layer : findings.absent()) {
      spec.commandLine().getOut().println(layer + ": not in the cache, the source has it");
    }

    spec.commandLine().getOut().println(good ? "good" : "different");
    spec.commandLine().getOut().flush();
    return good ? CommandLine.ExitCode.OK : VerifyCommand.DIFFERENCE;
  }

  private void requirePositive(String option, int value) {
    require(value >= 1, "Invalid " + option + ": " + value + " (must be 1 at least)");
  }

  private void require(boolean condition, String message) {
    if (!condition) {
      throw new ParameterException(spec.commandLine(), message);
    }
  }
}
