package org.sparkfp4.columnar;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Says in a message which rows a batch holds, by the columns that a reader would know them by. */
final class BatchText {
  private static final int ROWS_SHOWN = 4;

  private BatchText() {}

  static String of(ColumnarBatch batch, List<String> names) {
    List<String> rows = new ArrayList<>();
    for (int row = 0; row < Math.min(batch.numRows(), ROWS_SHOWN); row++) {
      rows.add(row(batch, row, names));
    }

    String more = batch.numRows() > ROWS_SHOWN ? " and " + (batch.numRows() - ROWS_SHOWN) + " more" : "";
    return "a batch of " + batch.numRows() + " rows, " + String.join(", ", rows) + more;
  }

  private static String row(ColumnarBatch batch, int row, List<String> names) {
    List<String> cells = new ArrayList<>();
    for (int i = 0; i < batch.numCols(); i++) {
      ColumnVector column = batch.column(i);
      DataType type = column.dataType();
      if (column.isNullAt(row)) {
        continue;
      }

      if (type.equals(DataTypes.StringType)) {
        cells.add(names.get(i) + "=" + column.getUTF8String(row));
      } else if (type.equals(DataTypes.IntegerType)) {
        cells.add(names.get(i) + "=" + column.getInt(row));
      } else if (type.equals(DataTypes.LongType)) {
        cells.add(names.get(i) + "=" + column.getLong(row));
      }
    }

    return "[" + String.join(", ", cells) + "]";
  }
}
