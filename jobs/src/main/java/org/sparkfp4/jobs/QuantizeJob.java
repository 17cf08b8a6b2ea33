package org.sparkfp4.jobs;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.udf;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.FreeSpace;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.files.SourceChangedException;
import org.sparkfp4.files.UnchangedFile;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.functions.Nvfp4Amax;
import org.sparkfp4.functions.Nvfp4Functions;
import org.sparkfp4.functions.Nvfp4Gptq;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.SourceChecksums;
import org.sparkfp4.plan.AmaxFile;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardSelection;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.report.Stages;

/** Carries a plan out: from source rows through the function to shards, then publishes the checkpoint. */
final class QuantizeJob {
  private static final Logger LOG = LoggerFactory.getLogger(QuantizeJob.class);
  private static final String SAFETENSORS = "safetensors";

  private final SparkSession spark;
  private final Configuration conf;
  private final QuantizationPlan plan;
  private final OutputFolder output;
  private final Nvfp4Recipe recipe;
  private final KernelChoice kernels;
  private final Map<Integer, Float> knownAmax;
  private final String progress;
  private final Stages stages;
  private final Publication publication;

  /**
   * @param knownAmax of units that do not have the say themselves, by unit number
   * @param stages takes what the job did
   * @param publication what is done with finished shards
   */
  QuantizeJob(
      SparkSession spark,
      QuantizationPlan plan,
      OutputFolder output,
      Nvfp4Recipe recipe,
      KernelChoice kernels,
      Map<Integer, Float> knownAmax,
      String progress,
      Stages stages,
      Publication publication) {
    this.spark = spark;
    this.conf = spark.sessionState().newHadoopConf();
    this.plan = plan;
    this.output = output;
    this.recipe = recipe;
    this.kernels = kernels;
    this.knownAmax = Map.copyOf(knownAmax);
    this.progress = progress;
    this.stages = stages;
    this.publication = publication;
  }

  /**
   * Finishes the checkpoint: writes the shards that are missing, then what stands beside them.
   *
   * @param overwrite whether what another plan left may be replaced
   * @return the records of all its shards; in a folder that was finished already, nothing is done
   */
  List<ShardRecord> run(boolean overwrite) throws IOException {
    requireOutput(overwrite);
    if (output.isComplete(plan)) {
      LOG.info("{} is complete: nothing to do", output.path());
      return List.copyOf(output.finished(plan).values());
    }

    requireSpace(overwrite);
    try (OutputLock lock = OutputLock.acquire(output.fs(), output.staging().lock())) {
      prepare(overwrite);
      writeMissing();
      List<ShardRecord> records = List.copyOf(output.finished(plan).values());
      publication.publish(records, lock, conf);
      output.staging().remove();
      return records;
    }
  }

  /** Refuses a folder of somebody else's, or of another plan where that is not to be replaced. */
  void requireOutput(boolean overwrite) throws IOException {
    output.requireFor(plan, overwrite, conf);
  }

  private void requireSpace(boolean overwrite) throws IOException {
    Map<Integer, ShardRecord> finished = overwrite ? Map.of() : output.finished(plan);
    long needed =
        plan.shards().stream()
            .filter(shard -> !finished.containsKey(shard.index()))
            .mapToLong(OutputShard::dataBytes)
            .sum();
    FreeSpace.require(output.fs(), output.path(), needed - (overwrite ? output.shardBytes() : 0));
  }

  private void prepare(boolean overwrite) throws IOException {
    if (overwrite) {
      output.clear();
    } else {
      output.requireSamePlan(plan, conf);
      output.unpublish();
      output.staging().sweepAttempts();
    }

    PlanFile.write(conf, output.staging().plan(), plan);
  }

  private void writeMissing() throws IOException {
    Map<Integer, ShardRecord> finished = output.finished(plan);
    List<Integer> missing =
        plan.shards().stream().map(OutputShard::index).filter(index -> !finished.containsKey(index)).toList();
    if (!finished.isEmpty()) {
      LOG.info("Resuming: {} of {} shards are finished", finished.size(), plan.shards().size());
    }

    if (missing.isEmpty()) {
      return;
    }

    ShardSelection shards = new ShardSelection(missing);
    String group = "sparkfp4-" + plan.fingerprint();
    spark.sparkContext().setJobGroup(group, "quantize " + plan.input(), false);
    try {
      if (findAmaxOfCutUnits(shards)) {
        stages.end("find the amax of units read by rows", 0, 0);
      }

      planned(shards)
          .option("amax", output.staging().amax().toString())
          .load()
          .select(col("unit"), col("slab"), quantize().as("quantized"), col("checksums"))
          .write()
          .format(SAFETENSORS)
          .option("plan", output.staging().plan().toString())
          .option("shards", shards.toString())
          .option("progress", progress)
          .option(KernelChoice.DEVICE_KEY, kernels.device().optionName())
          .mode("append")
          .save();
    } catch (RuntimeException e) {
      // a refusal ends the job while its other tasks run on
      spark.sparkContext().cancelJobGroup(group);
      throw failure(e);
    } finally {
      spark.sparkContext().clearJobGroup();
    }

    List<OutputShard> written = missing.stream().map(plan.shards()::get).toList();
    stages.end(
        "read, quantize and write " + written.size() + (written.size() == 1 ? " shard" : " shards"),
        written.stream().mapToLong(OutputShard::sourceBytes).sum(),
        written.stream().mapToLong(OutputShard::dataBytes).sum());
  }

  private DataFrameReader planned(ShardSelection shards) {
    return spark
        .read()
        .format(SAFETENSORS)
        .option("plan", output.staging().plan().toString())
        .option("shards", shards.toString());
  }

  private Column quantize() {
    UserDefinedFunction function = plan.options().isGptq()
        ? udf(new Nvfp4Gptq(recipe, plan.options().statistics().damping(), kernels.tier()), Nvfp4Gptq.RETURN_TYPE)
        : udf(Nvfp4Functions.quantize(recipe, plan.options().search(), kernels), Nvfp4Quantize.RETURN_TYPE);
    return function
        .apply(
            col("data0"), col("data1"), col("data2"), col("scale0"), col("scale1"), col("scale2"), col("scheme"),
            col("cols"), col("amax"), col("importance"));
  }

  /** A unit that is read by rows needs its amax before its first row is encoded. */
  private boolean findAmaxOfCutUnits(ShardSelection shards) throws IOException {
    Map<Integer, Float> amax = new TreeMap<>();
    boolean cut = plan.shards().stream().flatMap(shard -> shard.units().stream()).anyMatch(this::isUnknown);
    if (cut) {
      Column ofSlab =
          udf(Nvfp4Functions.amax(kernels), Nvfp4Amax.RETURN_TYPE)
              .apply(
                  col("data0"), col("data1"), col("data2"), col("scale0"), col("scale1"), col("scale2"), col("scheme"),
                  col("cols"));
      for (Row row :
          planned(shards).option("slabs", "cut").load().select(col("unit"), ofSlab.as("amax")).collectAsList()) {
        amax.merge(row.getInt(0), row.getFloat(1), Math::max);
      }
    }

    amax.putAll(knownAmax);

    AmaxFile.write(conf, output.staging().amax(), amax);
    return cut;
  }

  private boolean isUnknown(Unit unit) {
    return unit.isCut(plan.slabBytes()) && !knownAmax.containsKey(unit.id());
  }

  /** What to tell of a job that failed: what is wrong with the source, if that is why. */
  private RuntimeException failure(RuntimeException e) throws IOException {
    for (Throwable cause = e; cause != null; cause = cause.getCause()) {
      if (cause instanceof BadSourceException || cause instanceof SourceChangedException) {
        return new JobException(cause.getMessage(), e);
      }
    }

    // an executor that dies of a source that changed under it says nothing
    try {
      requireUnchangedSource();
    } catch (SourceChangedException changed) {
      return new JobException(changed.getMessage(), e);
    }

    return e;
  }

  private void requireUnchangedSource() throws IOException {
    for (SourceFile file : plan.sources()) {
      Path path = ChildPath.of(new Path(plan.input()), file.name());
      UnchangedFile.require(RawFileSystem.of(path, conf), path, file.length(), file.modified());
    }
  }
}
