package org.sparkfp4.functions;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.sparkfp4.formats.ErrorSums;

/** What the functions that tell an encoding's error give. */
final class EncodingError {
  /**
   * A struct of sum_squares, squared_error, relative_error: the root of their ratio, 0 of a tensor of zeros, and sqnr:
   * the signal to quantization noise ratio in decibels, null where nothing was lost. All double.
   */
  static final StructType RETURN_TYPE = new StructType()
      .add("sum_squares", DataTypes.DoubleType)
      .add("squared_error", DataTypes.DoubleType)
      .add("relative_error", DataTypes.DoubleType)
      .add("sqnr", DataTypes.DoubleType);

  private EncodingError() {}

  static Row row(ErrorSums sums) {
    double relative = sums.squares() == 0 ? 0 : Math.sqrt(sums.squaredErrors() / sums.squares());
    return RowFactory.create(
        sums.squares(), sums.squaredErrors(), relative, relative > 0 ? -20 * Math.log10(relative) : null);
  }
}
