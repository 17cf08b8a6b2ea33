package org.sparkfp4.columnar;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * A source of Arrow batches of random units, shaped as the source of checkpoints is. Options: units (how many, numbered
 * from 0), step (between the numbers), rows (a batch), partitions, nan (the unit that has a NaN at element 5).
 */
public final class UnitSource implements TableProvider {
  static final StructType SCHEMA = new StructType()
      .add("unit", DataTypes.IntegerType)
      .add("slab", DataTypes.IntegerType)
      .add("name", DataTypes.StringType)
      .add("dtype", DataTypes.StringType)
      .add("cols", DataTypes.LongType)
      .add("amax", DataTypes.FloatType)
      .add("data0", DataTypes.BinaryType)
      .add("data1", DataTypes.BinaryType)
      .add("data2", DataTypes.BinaryType);

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SCHEMA;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new UnitTable();
  }

  private record UnitTable() implements SupportsRead {
    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new UnitScan(options);
    }

    @Override
    public String name() {
      return "units";
    }

    @Override
    public Column[] columns() {
      return CatalogV2Util.structTypeToV2Columns(SCHEMA);
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }
  }

  private static final class UnitScan implements ScanBuilder, SupportsPushDownRequiredColumns, Scan, Batch {
    private final CaseInsensitiveStringMap options;
    private StructType required = SCHEMA;

    UnitScan(CaseInsensitiveStringMap options) {
      this.options = options;
    }

    @Override
    public void pruneColumns(StructType requiredSchema) {
      required = requiredSchema;
    }

    @Override
    public Scan build() {
      return this;
    }

    @Override
    public StructType readSchema() {
      return required;
    }

    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public ColumnarSupportMode columnarSupportMode() {
      return ColumnarSupportMode.SUPPORTED;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      InputPartition[] partitions = new InputPartition[options.getInt("partitions", 2)];
      for (int i = 0; i < partitions.length; i++) {
        partitions[i] = new UnitPartition(i, partitions.length, options.getInt("units", 10), options.getInt("step", 1),
            options.getInt("rows", 1), options.getInt("nan", -1), required.fieldNames());
      }

      return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new UnitReaderFactory();
    }
  }
}
