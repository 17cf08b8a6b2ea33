package org.sparkfp4.jobs;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.udf;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.functions.Nvfp4Amax;
import org.sparkfp4.functions.Nvfp4Functions;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.kernels.Device;
import org.sparkfp4.kernels.KernelChoice;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A program for SparkSubmit: the functions on a device against the CPU's, row by row, over random units of every kind,
 * several in a batch. Argument: the device. Prints how many rows were the same; an exception tells of the first other.
 */
public final class DeviceQueries {
  private static final int UNITS = 240;
  private static final int SLICES = 4;
  private static final String[] SCHEMES = {
    "BF16", "F16", "F32", "E4M3/F32/128x128", "E4M3/BF16/1x*", "INT4/BF16/1x32", "E2M1/E8M0/1x32"
  };
  private static final String[] NAMES = {
    "data0", "data1", "data2", "scale0", "scale1", "scale2", "scheme", "cols", "amax", "importance"
  };
  private static final DataType[] TYPES = {
    DataTypes.BinaryType, DataTypes.BinaryType, DataTypes.BinaryType, DataTypes.BinaryType, DataTypes.BinaryType,
    DataTypes.BinaryType, DataTypes.StringType, DataTypes.LongType, DataTypes.FloatType, DataTypes.BinaryType
  };

  private final SparkSession spark;
  private final KernelChoice device;

  private DeviceQueries(SparkSession spark, KernelChoice device) {
    this.spark = spark;
    this.device = device;
  }

  public static void main(String[] arguments) {
    SparkSession spark = Session.start("device queries");
    DeviceQueries queries = new DeviceQueries(spark, new KernelChoice(Device.named(arguments[0]), "auto"));
    List<Row> units = units();
    int same = 0;
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      for (ScaleSearch search : ScaleSearch.values()) {
        same += queries.quantized(recipe, search, units, false);
      }
    }

    same += queries.quantized(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, units, true);
    same += queries.amaxes(units);
    queries.namesWhatIsNotFinite(units);
    System.out.println(same + " rows are the same on device " + arguments[0]);
    spark.stop();
  }

  /** @param shuffled whether the rows go through an exchange first, which cuts batches into slices */
  private int quantized(Nvfp4Recipe recipe, ScaleSearch search, List<Row> units, boolean shuffled) {
    Column function = udf(Nvfp4Functions.quantize(recipe, search, device), Nvfp4Quantize.RETURN_TYPE)
        .apply(Arrays.stream(NAMES).map(name -> col(name)).toArray(Column[]::new));
    Dataset<Row> input = shuffled ? frame(units).repartition(3) : frame(units);
    Dataset<Row> query = input.select(col("unit"), function.as("q"));
    requirePlan(query);
    Nvfp4Quantize onCpu = new Nvfp4Quantize(recipe, search, "auto");
    List<Row> rows = query.collectAsList();
    require(rows.size() == units.size(), "all rows", units.size(), rows.size());
    for (Row row : rows) {
      Row unit = units.get(row.getInt(0));
      Row expected = onCpu.call(unit.getAs(1), unit.getAs(2), unit.getAs(3), unit.getAs(4), unit.getAs(5),
          unit.getAs(6), unit.getAs(7), unit.getAs(8), unit.getAs(9), unit.getAs(10));
      String what = recipe + ", " + search + ", unit " + row.getInt(0) + " " + unit.getAs(7);
      require(text(expected).equals(text(row.getAs(1))), what, text(expected), text(row.getAs(1)));
    }

    return rows.size();
  }

  private int amaxes(List<Row> units) {
    Column function = udf(Nvfp4Functions.amax(device), Nvfp4Amax.RETURN_TYPE)
        .apply(Arrays.stream(NAMES).limit(8).map(name -> col(name)).toArray(Column[]::new));
    Dataset<Row> query = frame(units).select(col("unit"), function.as("amax"));
    requirePlan(query);
    Nvfp4Amax onCpu = new Nvfp4Amax("auto");
    List<Row> rows = query.collectAsList();
    for (Row row : rows) {
      Row unit = units.get(row.getInt(0));
      Float expected = onCpu.call(unit.getAs(1), unit.getAs(2), unit.getAs(3), unit.getAs(4), unit.getAs(5),
          unit.getAs(6), unit.getAs(7), unit.getAs(8));
      require(Objects.equals(expected, row.get(1)), "amax of unit " + row.getInt(0), expected, row.get(1));
    }

    return rows.size();
  }

  private void namesWhatIsNotFinite(List<Row> units) {
    List<Row> with = new ArrayList<>(units);
    Row bad = units.stream().filter(unit -> "F32".equals(unit.getAs(7)) && unit.getAs(2) != null).findFirst().get();
    byte[] data = bad.<byte[]>getAs(2).clone();
    Arrays.fill(data, 4 * 37, 4 * 37 + 4, (byte) 0x7f);
    data[4 * 37 + 2] = (byte) 0xff;
    Object[] values = new Object[NAMES.length + 1];
    Arrays.setAll(values, i -> i == 2 ? data : bad.get(i));
    with.set(bad.getInt(0), RowFactory.create(values));
    Column function = udf(Nvfp4Functions.quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, device),
        Nvfp4Quantize.RETURN_TYPE).apply(Arrays.stream(NAMES).map(name -> col(name)).toArray(Column[]::new));
    try {
      frame(with).select(col("unit"), function.as("q")).collectAsList();
    } catch (Exception e) {
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        if (cause instanceof NonFiniteException found) {
          require(found.segment() == 1 && found.index() == 37, "position of the NaN", "1, 37",
              found.segment() + ", " + found.index());
          return;
        }
      }

      throw new AssertionError("The error names no weight", e);
    }

    throw new AssertionError("A NaN was encoded");
  }

  private void requirePlan(Dataset<Row> query) {
    String plan = query.queryExecution().executedPlan().toString();
    require(device.device() != Device.RAPIDS || plan.contains("GpuProject"), "plan", "GpuProject", plan);
  }

  private Dataset<Row> frame(List<Row> units) {
    StructType schema = new StructType().add("unit", DataTypes.IntegerType);
    for (int i = 0; i < NAMES.length; i++) {
      schema = schema.add(NAMES[i], TYPES[i]);
    }

    // a list would be a relation that the optimizer evaluates on the driver
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    return spark.createDataFrame(context.parallelize(units, SLICES), schema);
  }

  /** Units of every scheme, of one to three members, some null, some zero, some with their amax or statistics. */
  private static List<Row> units() {
    List<Row> units = new ArrayList<>();
    for (int i = 0; i < UNITS; i++) {
      Random random = new Random(i);
      String scheme = SCHEMES[i % SCHEMES.length];
      long cols = 32L * (1 + random.nextInt(12));
      Object[] row = new Object[NAMES.length + 1];
      row[0] = i;
      int members = i % 19 == 18 ? 0 : 1 + random.nextInt(3);
      for (int member = 0; member < members; member++) {
        long rows = 1 + random.nextInt(60);
        row[1 + member] = data(scheme, rows, cols, i % 23 == 22, random);
        row[4 + member] = scales(scheme, rows, cols, random);
      }

      row[7] = scheme;
      row[8] = cols;
      row[9] = i % 11 == 10 && !SourceScheme.parse(scheme).isStored() ? (Float) 96f : null;
      row[10] = i % 3 == 0 ? importance(cols, random) : null;
      units.add(RowFactory.create(row));
    }

    return units;
  }

  private static byte[] data(String scheme, long rows, long cols, boolean zero, Random random) {
    SourceScheme parsed = SourceScheme.parse(scheme);
    byte[] bytes = new byte[Math.toIntExact(parsed.dataBytes(rows, cols))];
    if (zero) {
      // INT4 has its zero at 8
      Arrays.fill(bytes, (byte) (scheme.startsWith("INT4") ? 0x88 : 0));
      return bytes;
    }

    random.nextBytes(bytes);
    for (int i = 0; i < bytes.length; i++) {
      if (scheme.startsWith("E4M3")) {
        bytes[i] = (bytes[i] & 0x7f) == 0x7f ? 0x7e : bytes[i];
      } else if (!parsed.isStored() && i % parsed.plain().bytes() == parsed.plain().bytes() - 1) {
        // magnitudes between 2^-7 and 2, and finite
        bytes[i] = (byte) (bytes[i] & 0x83 | 0x3c);
      }
    }

    return bytes;
  }

  private static byte[] scales(String scheme, long rows, long cols, Random random) {
    SourceScheme parsed = SourceScheme.parse(scheme);
    if (!parsed.isStored()) {
      return null;
    }

    byte[] bytes = new byte[Math.toIntExact(parsed.scaleBytes(rows, cols))];
    random.nextBytes(bytes);
    int size = parsed.stored().scales().bytes();
    for (int i = size - 1; i < bytes.length; i += size) {
      bytes[i] = size == 1 ? (byte) (110 + random.nextInt(20)) : (byte) (bytes[i] & 0x03 | 0x3c);
    }

    return bytes;
  }

  /** E[x^2] of each column, little-endian: finite and positive. */
  private static byte[] importance(long cols, Random random) {
    byte[] bytes = new byte[Math.toIntExact(4 * cols)];
    random.nextBytes(bytes);
    for (int i = 3; i < bytes.length; i += 4) {
      bytes[i] = 0x3c;
    }

    return bytes;
  }

  private static String text(Row row) {
    if (row == null) {
      return "null";
    }

    List<String> fields = new ArrayList<>();
    for (int i = 0; i < row.size(); i++) {
      fields.add(text(row.get(i)));
    }

    return String.join(" ", fields);
  }

  private static String text(Object value) {
    if (value instanceof byte[] bytes) {
      return bytes.length + ":" + HexFormat.of().formatHex(bytes);
    } else if (value instanceof double[] doubles) {
      return Arrays.toString(doubles);
    } else if (value instanceof long[] longs) {
      return Arrays.toString(longs);
    } else if (value instanceof Seq<?> list) {
      return CollectionConverters.asJava(list).toString();
    }

    return String.valueOf(value);
  }

  private static void require(boolean holds, String what, Object expected, Object found) {
    if (!holds) {
      throw new AssertionError(what + ": expected " + expected + ", found " + found);
    }
  }
}
