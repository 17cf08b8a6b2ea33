package org.sparkfp4.safetensors;

import java.util.Arrays;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The tensors of a checkpoint, or the slabs of a plan, as a table. */
final class SafetensorsTable implements SupportsRead {
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
    return Set.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new SafetensorsScanBuilder(options);
  }
}
