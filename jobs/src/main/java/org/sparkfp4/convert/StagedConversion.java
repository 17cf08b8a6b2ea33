package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.FreeSpace;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.plan.ByteSize;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * An output in two steps: a checkpoint in ModelOpt's layout in the run's own folder, then the same weights in a layout of
 * stacked experts. A layer's tensors need all its experts and the container is one file, so shards could not be the
 * output's files; as parts of them they cost no more to write. A run that ends early keeps what either step finished.
 */
public final class StagedConversion {
  /** Folder, in the run's own, of the first step's checkpoint. */
  private static final String STAGED = "modelopt";

  private final ConvertFolder folder;
  private final ConvertRequest request;
  private final QuantizationPlan plan;
  private final String fingerprint;
  private final List<ConvertFile> files;

  private StagedConversion(
      ConvertFolder folder, ConvertRequest request, QuantizationPlan plan, String fingerprint,
      List<ConvertFile> files) {
    this.folder = folder;
    this.request = request;
    this.plan = plan;
    this.fingerprint = fingerprint;
    this.files = files;
  }

  /** The first step: makes the checkpoint in {@link #staged}, or finishes it. */
  public interface Step {
    void run() throws IOException;
  }

  /**
   * Plans both steps.
   *
   * @param plan of the first
   * @param config the source's config.json
   * @param output the second's
   * @throws IllegalArgumentException if the layout does not take what the first step will make, naming the rule
   */
  public static StagedConversion of(
      QuantizationPlan plan, ObjectNode config, ConvertRequest request, OutputFolder output, Configuration conf)
      throws IOException {
    ObjectNode unquantized = config.deepCopy();
    unquantized.remove("quantization_config");
    SourceModel model = SourceModel.of(tensors(plan), Map.of(), unquantized);
    ConvertPlanner planner = request.planner(model, conf);
    return new StagedConversion(
        new ConvertFolder(output), request, plan, planner.fingerprint(plan.fingerprint()), planner.files());
  }

  private static List<LocatedTensor> tensors(QuantizationPlan plan) {
    List<LocatedTensor> tensors = new ArrayList<>();
    for (OutputShard shard : plan.shards()) {
      for (ShardItem item : shard.items()) {
        for (TensorInfo tensor : item.outputs()) {
          tensors.add(new LocatedTensor(
              tensor.name(), tensor.dtype(), tensor.shape(), shard.file(), tensor.begin(), tensor.length()));
        }
      }
    }

    return tensors;
  }

  /** How many files of tensors the output has. */
  public int files() {
    return files.size();
  }

  /** Bytes of the output's tensors. */
  public long dataBytes() {
    return files.stream().mapToLong(ConvertFile::dataBytes).sum();
  }

  /** A plan's summary, of the files that the second step writes instead of those of the first. */
  public PlanSummary summary(PlanSummary first) {
    return first.withFiles(
        files.stream().mapToLong(file -> file.tensors().size()).sum(),
        files.stream().map(file -> new PlanSummary.ShardSize(file.name(), file.dataBytes())).toList());
  }

  /** What the way there asks for, as a line of such a summary. */
  public String room() {
    return String.format(Locale.ROOT, "%-11s%s free in the output's folder while it runs: layout modelopt is made first, "
        + "in %s, and experts are stacked from that%n",
        "room", ByteSize.format(spaceBytes()), staged().path().getParent().getName() + "/" + STAGED);
  }

  /** Both steps' bytes, and those of parts beside the file that is made of them. */
  private long spaceBytes() {
    return plan.shards().stream().mapToLong(OutputShard::dataBytes).sum()
        + files.stream().mapToLong(file -> (file.byParts() ? 2 : 1) * file.dataBytes()).sum();
  }

  /** Where the first step writes. */
  public OutputFolder staged() {
    return new OutputFolder(folder.output().fs(), new Path(folder.output().staging().root(), STAGED));
  }

  /**
   * Refuses an output that holds what is somebody else's, or of another plan where that is not to be replaced.
   *
   * @throws IOException naming the folder and what is in it
   */
  public void requireOutput(boolean overwrite) throws IOException {
    folder.requireFor(fingerprint, request.target(), overwrite);
  }

  /** Whether the output is finished. */
  public boolean isComplete() throws IOException {
    return folder.isComplete(fingerprint);
  }

  /**
   * Finishes the output.
   *
   * @param overwrite whether what another plan left may be replaced
   * @param commit how files get their names
   * @param kernels that arrange experts, as {@link ConvertJob#plan} takes them
   * @param producer the product's name and version
   * @param view of the second step's progress; closed when all is written
   * @return what could not be kept, in words
   */
  public String run(SparkSession spark, Step first, boolean overwrite, String commit, KernelChoice kernels,
      String producer, ProgressView view) throws IOException {
    requireOutput(overwrite);
    OutputFolder output = folder.output();
    FreeSpace.require(
        output.fs(), output.path(), Math.max(0, spaceBytes() - output.shardBytes() - staged().shardBytes()));
    try (OutputLock lock = OutputLock.acquire(output.fs(), output.staging().lock())) {
      if (overwrite) {
        output.fs().delete(staged().path(), true);
      } else {
        folder.requireSame(fingerprint, request.target());
      }

      folder.begin(fingerprint, plan.input(), request.target(), overwrite);
      first.run();
      Checkpoint made = Checkpoint.open(spark.sessionState().newHadoopConf(), staged().path().toString());
      ConvertJob job = ConvertJob.plan(spark, made, request, output, commit, kernels, producer).named(fingerprint);
      return job.finish(lock, Provenance.of(staged().manifest()), view);
    }
  }
}
