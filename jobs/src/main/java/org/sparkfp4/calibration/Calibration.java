package org.sparkfp4.calibration;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.Partitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.progress.CountedJob;
import org.sparkfp4.progress.ProgressView;

/**
 * Reduces activations to statistics in two steps: each task sums a part of the activations, one input at a time; the
 * sums go to the task that writes their file, which adds them up. Inputs whose sums are too large for a task
 * ({@link Bands}) are read once for each band of their columns.
 */
public final class Calibration {
  private static final Logger LOG = LoggerFactory.getLogger(Calibration.class);

  private final SparkSession spark;
  private final Configuration conf;
  private final ActivationSource source;
  private final ModelModules model;
  private final CalibrationPlan plan;
  private final String commit;
  private final String tier;
  private final String producer;

  /**
   * Plans a calibration.
   *
   * @param model the model that the activations are of, or null if it is not known
   * @param commit how files get their names, as {@link org.sparkfp4.output.Storage#of} takes it
   * @param tier of the processor's kernels, as {@link org.sparkfp4.kernels.ProductKernels#forTier} takes it
   * @param producer the product's name and version
   * @throws IllegalArgumentException if source and model do not go together
   */
  public Calibration(
      SparkSession spark,
      ActivationSource source,
      ModelModules model,
      HessianKind hessian,
      String commit,
      String tier,
      String producer) {
    this(spark, source, model, new CalibrationPlanner(hessian, model).plan(source), commit, tier, producer);
  }

  Calibration(
      SparkSession spark,
      ActivationSource source,
      ModelModules model,
      CalibrationPlan plan,
      String commit,
      String tier,
      String producer) {
    this.spark = spark;
    this.conf = spark.sessionState().newHadoopConf();
    this.source = source;
    this.model = model;
    this.plan = plan;
    this.commit = commit;
    this.tier = tier;
    this.producer = producer;
  }

  /**
   * Makes the statistics; where they are there already, of the same files, nothing is done.
   *
   * @param folder to write, new, empty, or of an earlier calibration
   * @param overwrite whether statistics of other activations may be replaced
   * @param view of the progress; closed when all is read and written
   * @throws BadSourceException if an activation is not finite or goes to an expert that is none, naming it
   */
  public StatisticsIndex run(FileSystem fs, Path folder, boolean overwrite, ProgressView view) throws IOException {
    StatisticsOutput output = new StatisticsOutput(fs, folder);
    output.requireOwn();
    if (!overwrite) {
      StatisticsIndex there =
          output.finished(conf, plan.hessian(), model == null ? null : model.model(), source.files());
      if (there != null) {
        LOG.info("{} is complete: nothing to do", folder);
        return there;
      }
    }

    try (OutputLock lock = OutputLock.acquire(fs, output.staging().lock())) {
      output.clear();
      List<ShardOutcome> outcomes = new CountedJob(spark.sparkContext(), view).run(reduction(folder)::collect);
      StatisticsIndex index = index(outcomes);
      lock.requireHeld();
      output.publish(index);
      output.staging().remove();
      return index;
    }
  }

  private JavaRDD<ShardOutcome> reduction(Path folder) {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Broadcast<CalibrationPlan> shared = context.broadcast(plan);
    Broadcast<SerializableConfiguration> configuration = context.broadcast(new SerializableConfiguration(conf));
    JavaRDD<Row> rows = source.rows().javaRDD();
    Bands bands = plan.bands();
    int passes = plan.inputs().values().stream().mapToInt(bands::count).max().orElseThrow();
    JavaPairRDD<EntryBand, Partial> partials = null;
    for (int band = 0; band < passes; band++) {
      JavaPairRDD<EntryBand, Partial> pass =
          rows.mapPartitionsToPair(new SlabReduction(shared, configuration, band, tier));
      partials = partials == null ? pass : partials.union(pass);
    }

    return partials
        .partitionBy(new ByShard(plan.shards()))
        .mapPartitionsWithIndex(new StatisticsShard(shared, configuration, TaskOutput.ofNewRun(folder, commit)), false);
  }

  private StatisticsIndex index(List<ShardOutcome> outcomes) {
    Optional<String> refusal =
        outcomes.stream().flatMap(outcome -> outcome.refusals().stream()).min(Comparator.naturalOrder());
    if (refusal.isPresent()) {
      throw new BadSourceException(refusal.get());
    }

    List<StatisticsIndex.StatisticsFile> files = new ArrayList<>();
    List<ModuleStatistics> modules = new ArrayList<>();
    for (ShardOutcome outcome : outcomes) {
      files.add(new StatisticsIndex.StatisticsFile(outcome.file(), outcome.length(), outcome.sha256()));
      modules.addAll(outcome.modules());
    }

    return new StatisticsIndex(
        StatisticsIndex.FORMAT, producer, plan.hessian().optionName(), model == null ? null : model.model(),
        source.files(), BlockAmaxHistogram.bounds(), files, modules, ExpertTokens.of(modules));
  }

  /** A partition a file. */
  private static final class ByShard extends Partitioner {
    private static final long serialVersionUID = 1L;

    private final int shards;

    ByShard(int shards) {
      this.shards = shards;
    }

    @Override
    public int numPartitions() {
      return shards;
    }

    @Override
    public int getPartition(Object key) {
      return ((EntryBand) key).shard();
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof ByShard by && by.shards == shards;
    }

    @Override
    public int hashCode() {
      return shards;
    }
  }
}
