package org.sparkfp4.sink;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.Set;
import java.util.TreeSet;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.util.LongAccumulator;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.layouts.ActivationLayout;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.TaskOutput;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardSelection;
import org.sparkfp4.progress.ProgressView;

/**
 * The driver's side of a write. Finished shards stand under their final names as soon as their task ends; they are no
 * checkpoint until the index is there, so a write that fails keeps them for the run that resumes it.
 */
final class ShardBatchWrite implements BatchWrite {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final QuantizationPlan plan;
  private final ShardSelection shards;
  private final Path output;
  private final String commit;
  private final KernelChoice kernels;
  private final ShardProgress progress;
  private boolean refused;

  ShardBatchWrite(
      QuantizationPlan plan,
      ShardSelection shards,
      Path output,
      String commit,
      KernelChoice kernels,
      ProgressView view) {
    this.plan = plan;
    this.shards = shards;
    this.output = output;
    this.commit = commit;
    this.kernels = kernels;
    this.progress = new ShardProgress(shards.indices().stream().map(plan.shards()::get).toList(), view);
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    if (info.numPartitions() != shards.indices().size()) {
      throw new IllegalStateException(
          "Cannot write " + shards.indices().size() + " shards from " + info.numPartitions()
              + " partitions: the query must keep the partitions of the planned source");
    }

    SparkSession spark = SparkSession.active();
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    // One broadcast, of which a task decodes its own shard only: a plan of a large model is tens of megabytes.
    Broadcast<byte[][]> encoded = context.broadcast(shards.indices().stream().map(this::encode).toArray(byte[][]::new));
    Broadcast<SerializableConfiguration> conf =
        context.broadcast(new SerializableConfiguration(spark.sessionState().newHadoopConf()));
    // The last that may fail, for Spark calls neither commit() nor abort() after that.
    LongAccumulator underWay = progress.begin(spark.sparkContext());
    return new ShardWriterFactory(
        encoded,
        conf,
        new WriteTarget(
            plan.input(), plan.sources(), plan.slabBytes(), plan.options().isGptq(), kernels,
            plan.fingerprint(), TaskOutput.ofNewRun(output, commit), layoutToName(), underWay));
  }

  /** Both layouts of activations have the same names, dtypes and shapes. */
  private String layoutToName() {
    String layout = plan.options().layout();
    return layout.equals(ActivationLayout.TRT_EDGE_LLM) ? layout : null;
  }

  /** A shard's part of the plan, compressed: names that differ in a number make nine tenths of it. */
  private byte[] encode(int shard) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream out = new GZIPOutputStream(bytes)) {
      JSON.writeValue(out, plan.shards().get(shard));
    } catch (IOException e) {
      throw new IllegalStateException("Cannot encode shard " + shard + " of the plan", e);
    }

    return bytes.toByteArray();
  }

  @Override
  public void onDataWriterCommit(WriterCommitMessage message) {
    if (message instanceof ShardMessage.Finished finished) {
      progress.finished(shards.indices().indexOf(finished.record().shard()));
    } else if (!refused) {
      // Thrown here it ends the job at once, while an exception in the task would be tried again. Thrown once: Spark
      // logs what comes from the tasks that are still under way.
      refused = true;
      throw new BadSourceException(((ShardMessage.Refused) message).reason());
    }
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    progress.close();
    Set<Integer> missing = new TreeSet<>(shards.indices());
    for (WriterCommitMessage message : messages) {
      missing.remove(((ShardMessage.Finished) message).record().shard());
    }

    if (!missing.isEmpty()) {
      throw new IllegalStateException("Cannot commit " + output + ": no task wrote the shards " + missing);
    }
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    progress.close();
    // Finished shards are what a resumed run needs; unfinished attempts were removed by their writers or are swept by
    // the next run.
  }
}
