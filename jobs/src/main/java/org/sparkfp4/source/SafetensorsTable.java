package org.sparkfp4.source;

import java.util.Arrays;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.sparkfp4.sink.ShardWriteBuilder;

/** The tensors of a checkpoint, or the slabs of a plan, as a table; written to, the shards of a plan. */
final class SafetensorsTable implements SupportsRead, SupportsWrite {
  private final CaseInsensitiveStringMap properties;

  SafetensorsTable(CaseInsensitiveStringMap properties) {
    this.properties = properties;
  }

  @Override
  public String name() {
    return "safetensors " + properties.getOrDefault("plan", properties.getOrDefault("path", ""));
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(ReadOptions.schema(properties).fields())
        .map(field -> Column.create(field.name(), field.dataType(), field.nullable()))
        .toArray(Column[]::new);
  }

  @Override
  public Set<TableCapability> capabilities() {
    // a write has the columns of nvfp4_quantize's result, not those of the source
    return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new SafetensorsScanBuilder(options);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new ShardWriteBuilder(info);
  }
}
