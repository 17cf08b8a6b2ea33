package org.sparkfp4.report;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The table of layers: a column a component of {@link LayerRow}. */
final class LayerTable {
  static final StructType SCHEMA = new StructType()
      .add("module", DataTypes.StringType, false)
      .add("role", DataTypes.StringType, false)
      .add("layer", DataTypes.IntegerType)
      .add("expert", DataTypes.IntegerType)
      .add("projection", DataTypes.StringType, false)
      .add("rows", DataTypes.LongType, false)
      .add("cols", DataTypes.LongType, false)
      .add("source", DataTypes.StringType, false)
      .add("amax", DataTypes.FloatType, false)
      .add("global_scale", DataTypes.FloatType)
      .add("sum_squares", DataTypes.DoubleType, false)
      .add("squared_error", DataTypes.DoubleType, false)
      .add("relative_error", DataTypes.DoubleType, false)
      .add("sqnr", DataTypes.DoubleType)
      .add("cosine", DataTypes.DoubleType)
      .add("zero_codes", DataTypes.DoubleType)
      .add("saturated_codes", DataTypes.DoubleType)
      .add("subnormal_scales", DataTypes.DoubleType, false)
      .add("largest_block_error", DataTypes.DoubleType)
      .add("block_row", DataTypes.LongType)
      .add("block_col", DataTypes.LongType)
      .add("requantized_blocks", DataTypes.LongType)
      .add("sampled", DataTypes.BooleanType)
      .add("outlier", DataTypes.BooleanType, false);

  private LayerTable() {}

  static Row row(LayerRow row) {
    return RowFactory.create(
        row.module(), row.role(), row.layer(), row.expert(), row.projection(), row.rows(), row.cols(), row.source(),
        row.amax(), row.globalScale(), row.sumSquares(), row.squaredError(), row.relativeError(), row.sqnr(),
        row.cosine(), row.zeroCodes(), row.saturatedCodes(), row.subnormalScales(), row.largestBlockError(),
        row.blockRow(), row.blockCol(), row.requantizedBlocks(), row.sampled(), row.outlier());
  }
}
