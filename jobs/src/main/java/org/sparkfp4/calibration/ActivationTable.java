package org.sparkfp4.calibration;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.length;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.min;
import static org.apache.spark.sql.functions.size;
import static org.apache.spark.sql.functions.udf;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.FractionalType;
import org.apache.spark.sql.types.IntegralType;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.tables.SourceTable;
import scala.collection.Seq;

/**
 * A table of activations, a token a row: {@code module} string, {@code token} an integer, {@code values} an array of
 * floats, or binary with a column {@code dtype} beside it; {@code experts}, an array of integers, where the module's
 * input is that of routed experts. Its rows are shuffled once, so that those of a module lie together.
 */
public final class ActivationTable implements ActivationSource {
  private static final UserDefinedFunction BYTES =
      udf((UDF1<Seq<Float>, byte[]>) ActivationTable::bytes, DataTypes.BinaryType);

  private final SparkSession spark;
  private final String name;
  private final Dataset<Row> table;
  private final boolean binary;
  private final boolean routed;
  private final List<FoundInput> inputs = new ArrayList<>();

  /**
   * Opens a table and finds its modules, which reads it once.
   *
   * @param name its format and its path, such as {@code parquet:/activations}
   * @throws IllegalArgumentException if a column is missing or the values of a module cannot be
   */
  public ActivationTable(SparkSession spark, String name) {
    this.spark = spark;
    this.name = name;
    this.table = SourceTable.open(spark, name);
    List<String> columns = Arrays.asList(table.columns());
    requireColumn(columns, "module");
    requireColumn(columns, "token");
    requireColumn(columns, "values");
    this.binary = table.schema().apply("values").dataType().equals(DataTypes.BinaryType);
    if (binary) {
      requireColumn(columns, "dtype");
    } else {
      requireArray("values", "ARRAY<FLOAT> or BINARY", type -> type instanceof FractionalType);
    }

    requireType("token", "an integer", ActivationTable::isWhole);
    this.routed = columns.contains("experts");
    if (routed) {
      requireArray("experts", "an array of integers", ActivationTable::isWhole);
    }

    findInputs();
  }

  private void requireColumn(List<String> columns, String column) {
    if (!columns.contains(column)) {
      throw new IllegalArgumentException("Invalid table " + name + ": it has no column " + column
          + "; it needs module, token and values, and dtype where values are binary");
    }
  }

  private void requireArray(String column, String expected, Predicate<DataType> element) {
    requireType(column, expected, type -> type instanceof ArrayType array && element.test(array.elementType()));
  }

  /** A cast would cut fractions off, and make null of what is no number. */
  private void requireType(String column, String expected, Predicate<DataType> holds) {
    DataType type = table.schema().apply(column).dataType();
    if (!holds.test(type)) {
      throw new IllegalArgumentException(
          "Invalid table " + name + ": column " + column + " is " + type.sql() + ", must be " + expected);
    }
  }

  private static boolean isWhole(DataType type) {
    return type instanceof IntegralType;
  }

  private void findInputs() {
    Column bytes = expr("CASE dtype WHEN 'F32' THEN 4 WHEN 'F16' THEN 2 WHEN 'BF16' THEN 2 END");
    Column cols = binary ? length(col("values")).divide(bytes) : size(col("values")).cast("double");
    Column whole = binary ? cols : expr("IF(values IS NULL OR exists(values, v -> v IS NULL), NULL, 1)");
    Column experts = routed ? col("experts") : lit(null);
    Column holes = routed ? expr("IF(exists(experts, e -> e IS NULL), 1, NULL)") : lit(null);
    List<Row> modules = table.groupBy("module")
        .agg(min(cols), max(cols), count(lit(1)), count(whole), count(col("token")), count(experts), count(holes))
        .orderBy("module")
        .collectAsList();
    for (Row row : modules) {
      String module = row.getString(0);
      long rows = row.getLong(3);
      require(module, module != null, "it is null");
      require(module, row.getLong(4) == rows, "a token has no values, a null among them, or a dtype that is not BF16, "
          + "F16 or F32");
      require(module, row.getLong(5) == rows, "a token is null");
      require(module, row.getDouble(1) == row.getDouble(2), "its tokens have " + number(row.getDouble(1)) + " to "
          + number(row.getDouble(2)) + " values, must be as many each");
      double k = row.getDouble(1);
      require(module, k > 0 && k % Nvfp4.BLOCK == 0, "its K is " + number(k) + ", must be a multiple of "
          + Nvfp4.BLOCK + "; leave the module out");
      require(module, row.getLong(6) == 0 || row.getLong(6) == rows, "some of its tokens have experts, and some none");
      require(module, row.getLong(7) == 0, "a token has a null among its experts");
      inputs.add(new FoundInput(module, (long) k, row.getLong(6) > 0, name));
    }

    if (inputs.isEmpty()) {
      throw new IllegalArgumentException("Invalid table " + name + ": it has no rows");
    }
  }

  private static String number(double cols) {
    return cols == Math.rint(cols) ? Long.toString((long) cols) : Double.toString(cols);
  }

  private void require(String module, boolean holds, String problem) {
    if (!holds) {
      throw new IllegalArgumentException("Invalid table " + name + ": module " + module + ": " + problem);
    }
  }

  private static byte[] bytes(Seq<Float> values) {
    ByteBuffer bytes = ByteBuffer.allocate(values.size() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < values.size(); i++) {
      bytes.putFloat(values.apply(i));
    }

    return bytes.array();
  }

  @Override
  public List<FoundInput> inputs() {
    return List.copyOf(inputs);
  }

  @Override
  public Map<String, RoutingTensor> routings() {
    return Map.of();
  }

  @Override
  public Dataset<Row> rows() {
    // by ranges, so that one module's tokens may be several tasks' work
    return table.repartitionByRange(col("module"), col("token"))
        .sortWithinPartitions("module", "token")
        .select(
            col("module"),
            lit("").as("file"),
            col("token").cast("bigint"),
            lit(1L).as("tokens"),
            binary ? col("dtype") : lit("F32"),
            binary ? col("values") : BYTES.apply(col("values").cast("array<float>")),
            routed ? col("experts").cast("array<bigint>") : lit(null).cast("array<bigint>"));
  }

  @Override
  public List<SourceFile> files() {
    List<SourceFile> files = new ArrayList<>();
    try {
      for (String file : table.inputFiles()) {
        // a URI, whose escapes a path does not have
        Path path = new Path(URI.create(file));
        FileStatus status = RawFileSystem.of(path, spark.sessionState().newHadoopConf()).getFileStatus(path);
        files.add(new SourceFile(file, status.getLen(), status.getModificationTime()));
      }
    } catch (IOException | IllegalArgumentException e) {
      // a table without files of its own is read again each time
      return List.of();
    }

    return files;
  }
}
