package org.sparkfp4.calibration;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;

/**
 * Safetensors files of activations: tensors {@code <module>.input} {@code [tokens, K]} in BF16, F16 or F32. An input
 * may be in several files, a batch each, and tokens are numbered within each. {@code <module>.routing} {@code [tokens,
 * top_k]} in I32 or I64, in the file of its input, has the experts of each token.
 */
public final class ActivationFiles implements ActivationSource {
  /** What follows the module in the name of an input. */
  public static final String INPUT = ".input";

  private static final String ROUTING = ".routing";
  private static final Set<DType> ACTIVATIONS = Set.of(DType.BF16, DType.F16, DType.F32);
  private static final Set<DType> IDS = Set.of(DType.I32, DType.I64);

  private final SparkSession spark;
  private final String path;
  private final List<SourceFile> files = new ArrayList<>();
  private final Map<String, FoundInput> inputs = new LinkedHashMap<>();
  private final Map<String, RoutingTensor> routings = new TreeMap<>();

  /**
   * Finds the inputs of a folder's files or of one file, from headers alone.
   *
   * @throws IllegalArgumentException naming the tensor and its file if one cannot be what its name says
   */
  public ActivationFiles(SparkSession spark, String path) throws IOException {
    this.spark = spark;
    this.path = path;
    Configuration conf = spark.sessionState().newHadoopConf();
    for (Checkpoint file : Checkpoint.openFiles(conf, path)) {
      files.addAll(file.sourceFiles());
      file.tensors().forEach(tensor -> add(file, tensor));
    }

    if (inputs.isEmpty()) {
      throw new IllegalArgumentException("Invalid activations: " + path + " has no tensor <module>" + INPUT
          + "; name what goes into a linear layer after the layer");
    }
  }

  private void add(Checkpoint file, LocatedTensor tensor) {
    if (tensor.name().endsWith(INPUT)) {
      addInput(file, tensor);
    } else if (tensor.name().endsWith(ROUTING)) {
      String module = module(tensor, ROUTING);
      if (file.tensor(module + INPUT).isEmpty()) {
        throw invalid(tensor, "there is no " + module + INPUT + " in its file; keep the two in one file");
      }
    }
  }

  private void addInput(Checkpoint file, LocatedTensor tensor) {
    String module = module(tensor, INPUT);
    require(tensor, tensor.shape().size() == 2, "its shape is " + tensor.shape() + ", must be [tokens, K]");
    require(tensor, ACTIVATIONS.contains(tensor.dtype()), "its dtype is " + tensor.dtype()
        + ", must be BF16, F16 or F32");
    require(tensor, tensor.cols() > 0 && tensor.cols() % Nvfp4.BLOCK == 0 && tensor.cols() <= Integer.MAX_VALUE / 64,
        "its K is " + tensor.cols() + ", must be a multiple of " + Nvfp4.BLOCK
            + ", as layers that stay in high precision have it; leave the module out");
    LocatedTensor routing = file.tensor(module + ROUTING).orElse(null);
    if (routing != null) {
      require(routing, routing.shape().size() == 2 && routing.rows() == tensor.rows(), "its shape is "
          + routing.shape() + ", must be [tokens, top_k] with the " + tensor.rows() + " tokens of " + tensor.name());
      require(routing, IDS.contains(routing.dtype()), "its dtype is " + routing.dtype() + ", must be I32 or I64");
      routings.put(
          CalibrationPlan.routingKey(tensor.file(), module),
          new RoutingTensor(ChildPath.of(file.path(), tensor.file()).toString(), routing));
    }

    FoundInput found = new FoundInput(module, tensor.cols(), routing != null, tensor.file());
    FoundInput known = inputs.putIfAbsent(module, found);
    if (known != null && known.cols() != found.cols()) {
      throw invalid(tensor, "its K is " + found.cols() + ", but " + known.cols() + " in " + known.where()
          + "; give the activations of one model");
    }

    if (known != null && known.routed() != found.routed()) {
      throw invalid(tensor, "it has " + (found.routed() ? "a" : "no") + " routing, unlike in " + known.where()
          + "; give it in all files or in none");
    }
  }

  private static String module(LocatedTensor tensor, String suffix) {
    return tensor.name().substring(0, tensor.name().length() - suffix.length());
  }

  private static void require(LocatedTensor tensor, boolean holds, String problem) {
    if (!holds) {
      throw invalid(tensor, problem);
    }
  }

  private static IllegalArgumentException invalid(LocatedTensor tensor, String problem) {
    return new IllegalArgumentException(
        "Invalid activations: tensor " + tensor.name() + " (" + tensor.file() + "): " + problem);
  }

  @Override
  public List<FoundInput> inputs() {
    return List.copyOf(inputs.values());
  }

  @Override
  public Map<String, RoutingTensor> routings() {
    return routings;
  }

  @Override
  public Dataset<Row> rows() {
    return spark.read().format("safetensors").option("files", "all").load(path)
        .filter(col("name").endsWith(INPUT))
        .select(
            expr("substring(name, 1, length(name) - " + INPUT.length() + ")").as("module"),
            col("file"),
            col("row_offset"),
            col("rows"),
            col("dtype"),
            col("payload"),
            lit(null).cast("array<bigint>").as("experts"));
  }

  @Override
  public List<SourceFile> files() {
    return List.copyOf(files);
  }
}
