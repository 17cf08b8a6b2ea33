package org.sparkfp4.jobs;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.RelationProvider;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/** A format whose tables Spark knows no files of, as a database's: {@code CLASS:PATH} has the rows of a Parquet table. */
public final class TableWithoutFiles implements RelationProvider {
  @Override
  public BaseRelation createRelation(SQLContext context, Map<String, String> parameters) {
    return new Relation(context, parameters.apply("path"));
  }

  private static final class Relation extends BaseRelation implements TableScan {
    private final SQLContext context;
    private final String path;

    Relation(SQLContext context, String path) {
      this.context = context;
      this.path = path;
    }

    @Override
    public SQLContext sqlContext() {
      return context;
    }

    @Override
    public StructType schema() {
      return context.read().parquet(path).schema();
    }

    @Override
    public RDD<Row> buildScan() {
      return context.read().parquet(path).rdd();
    }
  }
}
