package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.ModelSizing;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.safetensors.DType;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code synthesize}: a checkpoint of random weights, for trials and benchmarks. */
@Command(
    name = "synthesize",
    description = "Makes a checkpoint with random weights and the names and shapes of a model family.",
    mixinStandardHelpOptions = true)
final class SynthesizeCommand implements Callable<Integer> {
  @Option(names = "--output", required = true, paramLabel = "DIR", converter = FolderText.class,
      description = "Folder to write, new or empty.")
  private String output;

  @Option(names = "--family", defaultValue = "qwen3_moe", paramLabel = "NAME",
      description = "One of ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private SyntheticFamily family;

  @ArgGroup
  private Extent extent = new Extent();

  @Option(names = "--dtype", defaultValue = "bf16", paramLabel = "TYPE",
      description = "Element type of the weights: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private WeightType dtype;

  @Option(names = "--seed", defaultValue = "0", paramLabel = "N",
      description = "The same seed gives the same bytes (default: ${DEFAULT-VALUE}).")
  private long seed;

  @Option(names = "--shard-size", defaultValue = "4GiB", paramLabel = "SIZE",
      description = "Largest shard (default: ${DEFAULT-VALUE}).")
  private ByteSize shardSize;

  @Mixin
  private Verbosity verbosity;

  @Spec
  private CommandSpec spec;

  /** How large: by bytes, or by the model's own sizes. */
  private static final class Extent {
    @Option(names = "--size", paramLabel = "SIZE",
        description = "Bytes of all weights, such as 16GiB (default: 64MiB). The family's widths are kept where they fit.")
    private ByteSize size;

    @ArgGroup(exclusive = false)
    private Sizes sizes;
  }

  /** Sizes of the model; those not given are the family's. */
  private static final class Sizes {
    @Option(names = "--layers", paramLabel = "N", description = "Decoder layers.")
    private Integer layers;

    @Option(names = "--experts", paramLabel = "N", description = "Routed experts a layer.")
    private Integer experts;

    @Option(names = "--hidden", paramLabel = "N", description = "Width of the model, a multiple of 16.")
    private Integer hidden;

    @Option(names = "--intermediate", paramLabel = "N", description = "Width of an expert, a multiple of 16.")
    private Integer intermediate;

    @Option(names = "--vocab", paramLabel = "N", description = "Rows of the embedding and of lm_head.")
    private Integer vocab;
  }

  /** Element types of trained weights. */
  private enum WeightType {
    BF16, F16, F32;

    DType dtype() {
      return DType.valueOf(name());
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Override
  public Integer call() throws IOException {
    SyntheticCheckpoint checkpoint =
        new SyntheticCheckpoint(family, shape(), dtype.dtype(), seed, shardSize.bytes());
    long start = System.nanoTime();
    try (SparkSession spark = SparkSession.builder().appName("Spark FP4 synthesize").getOrCreate()) {
      checkpoint.write(spark, new Path(output));
    }

    double seconds = (System.nanoTime() - start) / 1e9;
    spec.commandLine().getOut().printf("Wrote %s: %s, %d tensors in %d %s, %s in %.1f s (%.2f GB/s)%n",
        output, family, checkpoint.tensorCount(), checkpoint.shardCount(),
        checkpoint.shardCount() == 1 ? "shard" : "shards", ByteSize.format(checkpoint.dataBytes()),
        seconds, checkpoint.dataBytes() / 1e9 / seconds);
    return 0;
  }

  private ModelShape shape() {
    try {
      return extent.sizes == null ? fitted() : explicit(extent.sizes);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  private ModelShape fitted() {
    long bytes = extent.size == null ? 64L << 20 : extent.size.bytes();
    return ModelSizing.fit(family, bytes, dtype.dtype());
  }

  private ModelShape explicit(Sizes sizes) {
    ModelShape known = family.shape();
    return new ModelShape(or(sizes.layers, known.layers()), or(sizes.experts, known.experts()),
        or(sizes.hidden, known.hidden()), or(sizes.intermediate, known.intermediate()), or(sizes.vocab, known.vocab()));
  }

  private static int or(Integer given, int otherwise) {
    return given == null ? otherwise : given;
  }
}
