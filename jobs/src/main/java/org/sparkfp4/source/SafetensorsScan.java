package org.sparkfp4.source;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;

/** A read of some columns and names. Headers or the plan are read once, when its partitions are asked for. */
final class SafetensorsScan implements Scan, Batch {
  private final ReadOptions options;
  private final Configuration configuration;
  private final NameFilter names;
  private final StructType required;
  private InputPartition[] partitions;

  SafetensorsScan(ReadOptions options, Configuration configuration, NameFilter names, StructType required) {
    this.options = options;
    this.configuration = configuration;
    this.names = names;
    this.required = required;
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  @Override
  public String description() {
    String source = options.plan() != null ? "plan " + options.plan() : options.path();
    return "safetensors " + source + ", read: " + options.mode() + ", names: " + names;
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return SourceMetrics.all();
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    if (partitions == null) {
      try {
        partitions =
            options.planner().partitions(configuration, names, readsPayload()).toArray(InputPartition[]::new);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    return partitions.clone();
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(SparkSession.active().sparkContext());
    return new SlabReaderFactory(
        options.schema(), required, options.mode(), context.broadcast(new SerializableConfiguration(configuration)));
  }

  private boolean readsPayload() {
    return Arrays.stream(required.fields()).anyMatch(field -> field.dataType().equals(DataTypes.BinaryType));
  }
}
