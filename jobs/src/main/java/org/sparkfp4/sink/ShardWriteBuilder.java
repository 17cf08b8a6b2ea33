package org.sparkfp4.sink;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.sparkfp4.functions.Nvfp4Gptq;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardSelection;
import org.sparkfp4.progress.ProgressView;

/**
 * Configures a write of planned shards: {@code df.write().format("safetensors").option("plan", file)
 * .option("shards", "0,2").mode("append").save()}, with the columns {@code unit INT, slab INT, quantized} (the struct
 * that {@code nvfp4_quantize} returns) in the order of the planned source. The source's column {@code checksums} may
 * follow: what is recorded of the source then needs no reading of its own. An option {@code spark.fp4.device} beats the
 * session's setting.
 */
public final class ShardWriteBuilder implements WriteBuilder {
  private final StructType schema;
  private final CaseInsensitiveStringMap options;

  public ShardWriteBuilder(LogicalWriteInfo info) {
    this.schema = info.schema();
    this.options = info.options();
  }

  @Override
  public Write build() {
    String planPath = options.get("plan");
    if (planPath == null) {
      throw new IllegalArgumentException(
          "Cannot write safetensors without a plan: set the option plan to the plan.json that quantize made");
    }

    SparkSession spark = SparkSession.active();
    try {
      QuantizationPlan plan = PlanFile.read(spark.sessionState().newHadoopConf(), new Path(planPath));
      requireColumns(plan);
      ShardSelection shards = ShardSelection.parse(options.get("shards"), plan.shards().size());
      String commit = spark.conf().get("spark.fp4.commit", "auto");
      ProgressView view = ProgressView.of(progress(spark));
      Path output = new Path(planPath).getParent().getParent();
      KernelChoice kernels =
          KernelChoice.of(key -> options.containsKey(key) ? options.get(key) : spark.conf().get(key, null));
      return new ShardWrite(plan, shards, output, commit, kernels, view);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the plan " + planPath, e);
    }
  }

  /** An option beats the session's setting, which beats the default. */
  private String progress(SparkSession spark) {
    String option = options.get("progress");
    return option != null ? option : spark.conf().get("spark.fp4.progress", "auto");
  }

  private void requireColumns(QuantizationPlan plan) {
    StructType returned = plan.options().isGptq() ? Nvfp4Gptq.RETURN_TYPE : Nvfp4Quantize.RETURN_TYPE;
    if (schema.length() < 3 || schema.length() > 4 || !schema.apply(2).dataType().equals(returned)) {
      throw new IllegalArgumentException(
          "Invalid columns for a planned write: " + schema.catalogString()
              + "; they are unit INT, slab INT, what nvfp4_quantize returns and, if wanted, checksums BINARY");
    }
  }

  /** The write of a plan's shards. */
  private record ShardWrite(
      QuantizationPlan plan,
      ShardSelection shards,
      Path output,
      String commit,
      KernelChoice kernels,
      ProgressView view) implements Write {
    @Override
    public String description() {
      return "safetensors " + output;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
      return SinkMetrics.all();
    }

    @Override
    public BatchWrite toBatch() {
      return new ShardBatchWrite(plan, shards, output, commit, kernels, view);
    }

    /** Spark prints a write in every plan text; a record would print the whole plan, hundreds of megabytes. */
    @Override
    public String toString() {
      return description();
    }
  }
}
