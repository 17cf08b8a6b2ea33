package org.sparkfp4.columnar;

import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.functions.QuantizedRow;

/**
 * A sink of (unit, slab, q) that keeps in memory what it was given and how. Options: run (under which name), leak
 * (true: each writer retains its first packed bytes and never releases them).
 */
public final class UnitSink implements TableProvider {
  /**
   * One row as a writer saw it.
   *
   * @param arrow whether the row was an {@link ArrowRow}
   * @param packedAddress where the packed bytes lay, 0 unless arrow
   */
  record Written(int unit, QuantizedRow value, boolean arrow, long packedAddress) {}

  private static final Map<String, Queue<Written>> RUNS = new ConcurrentHashMap<>();

  static Queue<Written> run(String name) {
    return RUNS.computeIfAbsent(name, key -> new ConcurrentLinkedQueue<>());
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return new StructType()
        .add("unit", DataTypes.IntegerType)
        .add("slab", DataTypes.IntegerType)
        .add("q", Nvfp4Quantize.RETURN_TYPE);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new UnitSinkTable(CatalogV2Util.structTypeToV2Columns(schema));
  }

  private record UnitSinkTable(Column[] columns) implements SupportsWrite {
    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      CaseInsensitiveStringMap options = info.options();
      return new UnitWrite(options.get("run"), options.getBoolean("leak", false));
    }

    @Override
    public String name() {
      return "unit sink";
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_WRITE);
    }
  }

  private record UnitWrite(String run, boolean leak) implements WriteBuilder, Write, BatchWrite {
    @Override
    public Write build() {
      return this;
    }

    @Override
    public BatchWrite toBatch() {
      return this;
    }

    @Override
    public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
      String name = run;
      boolean leaks = leak;
      return (partition, task) -> new UnitWriter(name, leaks);
    }

    @Override
    public void commit(WriterCommitMessage[] messages) {}

    @Override
    public void abort(WriterCommitMessage[] messages) {}
  }
}
