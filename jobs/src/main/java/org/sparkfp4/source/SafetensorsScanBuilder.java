package org.sparkfp4.source;

import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Takes the columns and the names that a query wants. */
final class SafetensorsScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
  private final ReadOptions options;
  private final Configuration configuration;
  private final NameFilter names = new NameFilter();
  private StructType required;

  SafetensorsScanBuilder(CaseInsensitiveStringMap options) {
    SparkSession session = SparkSession.active();
    this.options = ReadOptions.parse(options, key -> session.conf().contains(key) ? session.conf().get(key) : null);
    this.configuration = session.sessionState().newHadoopConf();
    this.required = this.options.schema();
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    required = requiredSchema;
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    return Arrays.stream(predicates).filter(predicate -> !names.push(predicate)).toArray(Predicate[]::new);
  }

  @Override
  public Predicate[] pushedPredicates() {
    return names.pushed();
  }

  @Override
  public Scan build() {
    return new SafetensorsScan(options, configuration, names, required);
  }
}
