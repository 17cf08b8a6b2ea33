package org.sparkfp4.keys;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.files.FreeSpace;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.output.WritingJob;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.RunProgress;
import org.sparkfp4.progress.Work;

/** Makes a cache of keys: ranges of pages, then layers, then the index. */
public final class KeyJob {
  private static final Logger LOG = LoggerFactory.getLogger(KeyJob.class);

  private final SparkSession spark;
  private final KeyFolder folder;
  private final KeyPlan plan;
  private final KeyTable table;
  private final String commit;
  private final KernelChoice kernels;
  private final String writer;

  private KeyJob(SparkSession spark, KeyFolder folder, KeyPlan plan, KeyTable table, String commit,
      KernelChoice kernels, String writer) {
    this.spark = spark;
    this.folder = folder;
    this.plan = plan;
    this.table = table;
    this.commit = commit;
    this.kernels = kernels;
    this.writer = writer;
  }

  /**
   * Plans a run from headers and slot maps, or from one pass over a table.
   *
   * @param inputs safetensors files, or folders of them
   * @param tableName FORMAT:PATH, or null
   * @param keyType of a table's binary keys, or null
   * @param fs of the output
   * @param output its folder
   * @param commit how files get their names
   * @param kernels device and tier
   * @param writer the product's name and version
   * @throws InvalidKeysException naming what cannot be cached
   */
  public static KeyJob plan(SparkSession spark, List<String> inputs, String tableName, String keyType,
      KeyOptions options, FileSystem fs, Path output, String commit, KernelChoice kernels, String writer)
      throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    KeyPlanner planner = new KeyPlanner(conf, KeyInputs.open(conf, inputs), options);
    KeyTable table = tableName == null ? null : KeyTable.open(spark, tableName, keyType);
    KeyPlan plan = table == null ? planner.plan(String.join(", ", inputs)) : planner.plan(table);
    return new KeyJob(spark, new KeyFolder(fs, output), plan, table, commit, kernels, writer);
  }

  /** What the run makes, for people. */
  public KeySummary summary() {
    return KeySummary.of(plan, folder.path());
  }

  /**
   * Refuses an output that holds what is somebody else's, or of other keys or options where that is not to be replaced.
   *
   * @throws IOException naming the folder and what is in it
   */
  public void requireOutput(boolean overwrite) throws IOException {
    folder.requireOwn();
    if (!overwrite && !folder.isComplete(plan)) {
      folder.requireSame(plan);
    }
  }

  /**
   * Finishes the cache; in a folder that was finished already nothing is done.
   *
   * @param overwrite whether what other keys or options left may be replaced
   * @param view of the progress; closed when all is written
   */
  public void run(boolean overwrite, ProgressView view) throws IOException {
    requireOutput(overwrite);
    if (folder.isComplete(plan)) {
      LOG.info("{} is complete: nothing to do", folder.path());
      return;
    }

    requireSpace(overwrite);
    try (OutputLock lock = OutputLock.acquire(folder.fs(), folder.staging().lock())) {
      folder.begin(plan, overwrite);
      writeMissing(view);
      lock.requireHeld();
      folder.publish(plan, folder.finished(plan));
      folder.staging().remove();
    }
  }

  /** Ranges stand beside the layers that are made of them until the end. */
  private void requireSpace(boolean overwrite) throws IOException {
    long there = overwrite ? 0 : folder.finished(plan).values().stream().mapToLong(ShardRecord::length).sum();
    FreeSpace.require(folder.fs(), folder.path(), Math.max(0, 2 * plan.bytes() - there));
  }

  private static String counted(List<Integer> items, String name) {
    return items.size() + " " + name + (items.size() == 1 ? "" : "s");
  }

  private void writeMissing(ProgressView view) throws IOException {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Broadcast<KeyPlan> planned = context.broadcast(plan);
    Broadcast<SerializableConfiguration> conf =
        context.broadcast(new SerializableConfiguration(spark.sessionState().newHadoopConf()));
    TaskOutput output = TaskOutput.ofNewRun(folder.path(), commit);
    WritingJob tasks = new WritingJob(spark.sparkContext(), "quantize-keys", plan.fingerprint());
    try {
      Map<Integer, ShardRecord> finished = folder.finished(plan);
      List<Integer> layers = IntStream.range(0, plan.layers().size()).boxed()
          .filter(layer -> !finished.containsKey(plan.record(layer)))
          .toList();
      List<Integer> ranges = layers.stream()
          .flatMap(layer -> plan.rangesOf(plan.layers().get(layer)).stream())
          .map(CacheRange::id)
          .filter(id -> !finished.containsKey(id))
          .toList();
      if (!finished.isEmpty()) {
        LOG.info("Resuming: to be written are {} and {}", counted(ranges, "range"), counted(layers, "layer"));
      }

      long bytes = ranges.stream().mapToLong(plan::rangeBytes).sum() + layers.stream().mapToLong(plan::layerBytes).sum();
      try (RunProgress progress =
          new RunProgress(view, Work.FILES_WRITTEN, ranges.size() + layers.size(), bytes)) {
        progress.show();
        if (table == null) {
          String read = spark.conf().get("spark.fp4.read", "mmap");
          tasks.run(ranges, new FileRangeTask(planned, conf, output, kernels, read),
              range -> progress.finished(plan.rangeBytes(range)), "ranges");
        } else if (!ranges.isEmpty()) {
          tasks.run(table.partitioned(plan, ranges), ranges,
              new TableRangeTask(planned, conf, output, kernels, table.isBinary()),
              index -> progress.finished(plan.rangeBytes(ranges.get(index))), "ranges");
        }

        tasks.run(layers, new LayerTask(planned, conf, output, writer),
            layer -> progress.finished(plan.layerBytes(layer)), "layers");
      }
    } finally {
      planned.destroy();
      conf.destroy();
    }
  }
}
