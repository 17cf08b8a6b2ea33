package org.sparkfp4.sink;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.sparkfp4.functions.Nvfp4Gptq;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardSelection;

/**
 * Configures a write of planned shards: {@code df.write().format("safetensors").option("plan", file)
 * .option("shards", "0,2").mode("append").save()}, with the columns {@code unit INT, slab INT, quantized} (the struct
 * that {@code nvfp4_quantize} returns) in the order of the planned source.
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
      Path output = new Path(planPath).getParent().getParent();
      return new ShardWrite(plan, shards, output, commit);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read the plan " + planPath, e);
    }
  }

  private void requireColumns(QuantizationPlan plan) {
    StructType returned = plan.options().isGptq() ? Nvfp4Gptq.RETURN_TYPE : Nvfp4Quantize.RETURN_TYPE;
    if (schema.length() != 3 || !schema.apply(2).dataType().equals(returned)) {
      throw new IllegalArgumentException(
          "Invalid columns for a planned write: " + schema.catalogString()
              + "; they are unit INT, slab INT and what nvfp4_quantize returns");
    }
  }

  /** The write of a plan's shards. */
  private record ShardWrite(QuantizationPlan plan, ShardSelection shards, Path output, String commit) implements Write {
    @Override
    public String description() {
      return "safetensors " + output;
    }

    @Override
    public BatchWrite toBatch() {
      return new ShardBatchWrite(plan, shards, output, commit);
    }

    /** Spark prints a write in every plan text; a record would print the whole plan, hundreds of megabytes. */
    @Override
    public String toString() {
      return description();
    }
  }
}
