package org.sparkfp4.jobs;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.functions.Mxfp4Dequantize;
import org.sparkfp4.functions.Nvfp4Dequantize;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.kernels.KernelChoice;

/**
 * A program for SparkSubmit: the SQL functions by their names on a device against the same functions called in Java, over
 * random rows, several in a batch, some null, at any alignment. Argument: the device. Prints how many rows were the
 * same; an exception tells of the first other.
 */
public final class DequantizeQueries {
  private static final int ROWS = 240;
  private static final int SLICES = 4;
  private static final int COLS = 64;
  private static final StructType SCHEMA = new StructType()
      .add("unit", DataTypes.IntegerType)
      .add("packed", DataTypes.BinaryType)
      .add("scales16", DataTypes.BinaryType)
      .add("scales32", DataTypes.BinaryType)
      .add("global_scale", DataTypes.FloatType)
      .add("payload", DataTypes.BinaryType);

  private final SparkSession spark;
  private final String device;
  private final List<Row> rows = rows();

  private DequantizeQueries(SparkSession spark, String device) {
    this.spark = spark;
    this.device = device;
  }

  public static void main(String[] arguments) {
    SparkSession spark = Session.start("dequantize queries");
    run(spark, arguments[0]);
    spark.stop();
  }

  static void run(SparkSession spark, String device) {
    spark.conf().set(KernelChoice.DEVICE_KEY, device);
    DequantizeQueries queries = new DequantizeQueries(spark, device);
    int same = 0;
    for (boolean shuffled : new boolean[] {false, true}) {
      queries.createView(shuffled);
      same += queries.nvfp4(Nvfp4Recipe.MODELOPT, "");
      same += queries.nvfp4(Nvfp4Recipe.COMPRESSED_TENSORS, ", 'compressed-tensors'");
      same += queries.mxfp4();
      same += queries.thereAndBack();
    }

    queries.refusesScalesThatAreNotTheCodes();
    System.out.println(same + " payloads are the same on device " + device);
  }

  private int nvfp4(Nvfp4Recipe recipe, String argument) {
    Nvfp4Dequantize function = new Nvfp4Dequantize(recipe);
    return compared("nvfp4_dequantize(packed, scales16, global_scale" + argument + ")", "rows",
        row -> function.call(row.getAs(1), row.getAs(2), row.getAs(4)));
  }

  private int mxfp4() {
    Mxfp4Dequantize function = new Mxfp4Dequantize();
    return compared("mxfp4_dequantize(packed, scales32)", "rows", row -> function.call(row.getAs(1), row.getAs(3)));
  }

  /** The arguments are fields of what a function gave on the device. */
  private int thereAndBack() {
    Nvfp4Quantize quantize = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto");
    Nvfp4Dequantize dequantize = new Nvfp4Dequantize(Nvfp4Recipe.MODELOPT);
    return compared("nvfp4_dequantize(q.packed, q.scales, q.global_scale)",
        "(SELECT unit, nvfp4_quantize(payload, 'BF16', " + COLS + ") AS q FROM rows)", row -> {
          Row q = quantize.call(row.getAs(5), null, null, null, null, null, "BF16", (long) COLS, null, null);
          return q == null ? null : dequantize.call(q.getAs(0), q.getAs(1), q.getAs(5));
        });
  }

  private int compared(String call, String from, Expected expected) {
    Dataset<Row> query = spark.sql("SELECT unit, " + call + " AS payload FROM " + from);
    String plan = query.queryExecution().executedPlan().toString();
    require(!device.equals("rapids") || plan.contains("GpuProject"), "plan of " + call, "GpuProject", plan);
    List<Row> found = query.collectAsList();
    require(found.size() == rows.size(), "rows of " + call, rows.size(), found.size());
    for (Row row : found) {
      String what = call + ", unit " + row.getInt(0);
      require(text(expected.of(rows.get(row.getInt(0)))).equals(text(row.getAs(1))), what,
          text(expected.of(rows.get(row.getInt(0)))), text(row.getAs(1)));
    }

    return found.size();
  }

  private void refusesScalesThatAreNotTheCodes() {
    try {
      spark.sql("SELECT nvfp4_dequantize(packed, scales32, global_scale) AS payload FROM rows").collectAsList();
    } catch (Exception e) {
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        if (cause instanceof IllegalArgumentException && cause.getMessage().startsWith("Invalid scales: ")) {
          return;
        }
      }

      throw new AssertionError("The error names no scales", e);
    }

    throw new AssertionError("Codes were dequantized by another format's scales");
  }

  /** @param shuffled whether the rows go through an exchange first, which cuts batches into slices */
  private void createView(boolean shuffled) {
    // a list would be a relation that the optimizer evaluates on the driver
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    Dataset<Row> frame = spark.createDataFrame(context.parallelize(rows, SLICES), SCHEMA);
    (shuffled ? frame.repartition(3) : frame).createOrReplaceTempView("rows");
  }

  /** Codes of any bits with scales of either format; in rows with a null the other arguments are of odd lengths. */
  private static List<Row> rows() {
    List<Row> rows = new ArrayList<>();
    for (int unit = 0; unit < ROWS; unit++) {
      Random random = new Random(unit);
      int blocks = unit % 11 == 3 ? 0 : random.nextInt(unit % 13 == 5 ? 20_000 : 300);
      boolean isNull = unit % 7 == 2;
      byte[] weights = bytes(random, 2 * COLS * random.nextInt(40));
      for (int i = 1; i < weights.length; i += 2) {
        // magnitudes between 2^-7 and 2, and finite
        weights[i] = (byte) (weights[i] & 0x83 | 0x3c);
      }

      rows.add(RowFactory.create(
          unit, isNull && unit % 2 == 0 ? null : bytes(random, 16 * blocks + (isNull ? 5 : 0)),
          isNull && unit % 2 == 1 ? null : bytes(random, 2 * blocks),
          isNull && unit % 2 == 1 ? null : bytes(random, blocks),
          unit % 17 == 4 ? null : (Float) (0.001f + random.nextFloat()),
          unit % 5 == 1 ? null : weights));
    }

    return rows;
  }

  private static byte[] bytes(Random random, int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  private static String text(byte[] bytes) {
    return bytes == null ? "null" : bytes.length + ":" + HexFormat.of().formatHex(bytes);
  }

  private static void require(boolean holds, String what, Object expected, Object found) {
    if (!holds) {
      throw new AssertionError(what + ": expected " + expected + ", found " + found);
    }
  }

  /** What a row becomes. */
  private interface Expected {
    byte[] of(Row row);
  }
}
