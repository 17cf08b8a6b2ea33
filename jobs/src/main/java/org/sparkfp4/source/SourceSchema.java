package org.sparkfp4.source;

import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The columns of the source. Every payload is a column of its own: readers of the columnar kind want no nesting. */
final class SourceSchema {
  static final String NAME = "name";

  /** Rows of a folder or a file: slabs of whole rows of its tensors. */
  static final StructType STAND_ALONE = new StructType()
      .add(NAME, DataTypes.StringType, false)
      .add("dtype", DataTypes.StringType, false)
      .add("shape", DataTypes.StringType, false)
      .add("row_offset", DataTypes.LongType, false)
      .add("rows", DataTypes.LongType, false)
      .add("cols", DataTypes.LongType, false)
      .add("payload", DataTypes.BinaryType, false)
      .add("file", DataTypes.StringType, false);

  /**
   * Six little-endian CRC-32C, of data0 to data2 and scale0 to scale2 as a reader got them; 0 for one that is null.
   * They are taken when the row is, not when it is announced.
   */
  static final String CHECKSUMS = "checksums";

  /**
   * Rows of a plan's shards: slabs of units, a payload a member, and its scales where the source has some; and the
   * statistics of the unit's input where its errors are weighed.
   */
  static final StructType PLANNED = new StructType()
      .add("unit", DataTypes.IntegerType, false)
      .add("slab", DataTypes.IntegerType, false)
      .add(NAME, DataTypes.StringType, false)
      .add("scheme", DataTypes.StringType, false)
      .add("cols", DataTypes.LongType, false)
      .add("amax", DataTypes.FloatType, true)
      .add("data0", DataTypes.BinaryType, false)
      .add("data1", DataTypes.BinaryType, true)
      .add("data2", DataTypes.BinaryType, true)
      .add("scale0", DataTypes.BinaryType, true)
      .add("scale1", DataTypes.BinaryType, true)
      .add("scale2", DataTypes.BinaryType, true)
      .add("importance", DataTypes.BinaryType, true)
      .add(CHECKSUMS, DataTypes.BinaryType, false);

  private SourceSchema() {}
}
