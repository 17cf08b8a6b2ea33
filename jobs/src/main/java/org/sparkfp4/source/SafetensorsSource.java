package org.sparkfp4.source;

import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The data source {@code safetensors}.
 *
 * <p>{@code load(path)} reads a checkpoint's folder or a single file: a row holds some rows of a tensor. With the
 * option {@code files=all} it reads every safetensors file of a folder, which may name a tensor more than once. With
 * the option {@code plan} it reads the units of a plan's output shards: a partition a shard, a row a slab.
 */
public final class SafetensorsSource implements TableProvider, DataSourceRegister {
  /**
   * Holds the session's settings of reads to what they may be, before a read is planned.
   *
   * @param session gives the value of a key of the session's configuration, or null
   * @throws IllegalArgumentException naming the setting, its value and what it may be
   */
  public static void requireSettings(UnaryOperator<String> session) {
    ReadOptions.parse(new CaseInsensitiveStringMap(Map.of("path", "/")), session);
  }

  /** The names of the session's settings of reads. */
  public static List<String> settings() {
    return ReadOptions.SETTINGS;
  }

  @Override
  public String shortName() {
    return "safetensors";
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return ReadOptions.schema(options);
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new SafetensorsTable(new CaseInsensitiveStringMap(properties));
  }
}
