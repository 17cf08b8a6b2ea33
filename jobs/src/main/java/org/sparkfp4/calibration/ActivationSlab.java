package org.sparkfp4.calibration;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.sparkfp4.formats.ElementType;

/**
 * Some consecutive tokens of an input: a row of what is read, whatever it is read from.
 *
 * @param module the name that they come under
 * @param file the file that they are from; the empty text for a table's
 * @param firstToken number of the first token
 * @param tokens number of tokens
 * @param type of their elements
 * @param data the elements, {@code [tokens, K]}, little-endian
 * @param experts the experts that a table's token goes to; null where it names none
 */
record ActivationSlab(
    String module,
    String file,
    long firstToken,
    int tokens,
    ElementType type,
    ByteBuffer data,
    List<Long> experts) {
  /** The columns that {@link #of} takes. */
  static final StructType SCHEMA = new StructType()
      .add("module", DataTypes.StringType)
      .add("file", DataTypes.StringType)
      .add("first_token", DataTypes.LongType)
      .add("tokens", DataTypes.LongType)
      .add("dtype", DataTypes.StringType)
      .add("data", DataTypes.BinaryType)
      .add("experts", DataTypes.createArrayType(DataTypes.LongType));

  static ActivationSlab of(Row row) {
    return new ActivationSlab(
        row.getString(0),
        row.getString(1),
        row.getLong(2),
        Math.toIntExact(row.getLong(3)),
        ElementType.of(row.getString(4)),
        ByteBuffer.wrap(row.getAs(5)).order(ByteOrder.LITTLE_ENDIAN),
        row.isNullAt(6) ? null : row.getList(6));
  }

  int cols() {
    return tokens == 0 ? 0 : data.capacity() / type.bytes() / tokens;
  }

  /** Loads one token's activations; {@code index} counts from the slab's first. */
  void load(int index, double[] x) {
    int begin = index * x.length * type.bytes();
    for (int i = 0; i < x.length; i++) {
      x[i] = type.load(data, begin + i * type.bytes());
    }
  }

  /** Where a token is, for messages. */
  String describe(int index) {
    return "token " + (firstToken + index) + " of module " + module + (file.isEmpty() ? "" : " (" + file + ")");
  }
}
