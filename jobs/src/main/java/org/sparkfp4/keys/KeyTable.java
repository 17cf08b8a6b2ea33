package org.sparkfp4.keys;

import static org.apache.spark.sql.functions.coalesce;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.element_at;
import static org.apache.spark.sql.functions.exists;
import static org.apache.spark.sql.functions.floor;
import static org.apache.spark.sql.functions.length;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.map;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.min;
import static org.apache.spark.sql.functions.size;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.when;
import static org.apache.spark.sql.functions.xxhash64;

import java.io.IOException;
import java.io.Serializable;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.tables.SourceTable;

/** Keys in a table of any format that Spark reads: columns layer, slot and key. */
final class KeyTable {
  private static final List<String> COLUMNS = List.of("layer", "slot", "key");

  private final String name;
  private final Dataset<Row> rows;
  private final ElementType type;
  private final boolean isBinary;
  private final List<Layer> layers;
  private final String state;

  /**
   * What is in a layer.
   *
   * @param name the layer's
   * @param dim values of a key
   * @param type of their elements
   * @param tokens that have a slot
   * @param largestSlot -1 where there is none
   */
  record Layer(String name, int dim, ElementType type, long tokens, long largestSlot) {}

  /** @param files names, lengths and times of the files that the table is read from; empty where it has none */
  private KeyTable(String name, Dataset<Row> rows, ElementType type, boolean isBinary, String files) {
    this.name = name;
    this.rows = rows;
    this.type = type;
    this.isBinary = isBinary;
    this.layers = summarise();
    this.state = files.isEmpty() ? digest() : files;
  }

  /**
   * What tells the rows of a table without files of its own (a database's, a catalog's) from others, in whatever order
   * they come: how many a layer has and the sum of their hashes. It costs another pass over the keys.
   */
  private String digest() {
    return rows.groupBy("layer")
        .agg(count(lit(1)), sum(xxhash64(col("slot"), col("key")).cast("decimal(20, 0)")))
        .orderBy("layer")
        .collectAsList()
        .stream()
        .map(row -> row.getString(0) + " " + row.getLong(1) + " " + row.getDecimal(2) + "\n")
        .collect(Collectors.joining());
  }

  /**
   * Opens a table and finds its layers, in one pass over it.
   *
   * @param source FORMAT:PATH, such as parquet:/data/keys
   * @param keyType of binary keys: BF16, F16 or F32; null where keys are arrays of floats
   */
  static KeyTable open(SparkSession spark, String source, String keyType) throws IOException {
    Dataset<Row> table = SourceTable.open(spark, source);
    Set<String> missing = new TreeSet<>(COLUMNS);
    missing.removeAll(Arrays.asList(table.columns()));
    if (!missing.isEmpty()) {
      throw new InvalidKeysException("Invalid table " + source + ": it has no column " + String.join(", ", missing)
          + "; it must have layer, slot and key");
    }

    DataType type = table.schema().apply("key").dataType();
    boolean isBinary = type.equals(DataTypes.BinaryType);
    boolean isFloats = type instanceof ArrayType array && array.elementType().equals(DataTypes.FloatType);
    if (!isBinary && !isFloats) {
      throw new InvalidKeysException("Invalid table " + source + ": its column key is " + type.sql()
          + ", must be BINARY or ARRAY<FLOAT>");
    }

    if (isBinary && keyType == null) {
      throw new InvalidKeysException("Invalid table " + source + ": its keys are BINARY, give --key-type BF16, F16 or "
          + "F32 to say of what");
    }

    if (isFloats && keyType != null) {
      throw new InvalidKeysException("Invalid --key-type: " + keyType + ", the keys of table " + source
          + " are ARRAY<FLOAT>; leave it out, it says of what BINARY keys are");
    }

    requireLayerNames(source, table);
    requireWholeSlots(source, table);
    Dataset<Row> rows = table.select(col("layer").cast("string"), col("slot").cast("bigint"), col("key"));
    return new KeyTable(source, rows, isBinary ? ElementType.of(keyType) : ElementType.F32, isBinary,
        files(table, spark.sessionState().newHadoopConf()));
  }

  /** A list or a struct would become a text that looks like none of the layers' names. */
  private static void requireLayerNames(String source, Dataset<Row> table) {
    DataType type = table.schema().apply("layer").dataType();
    if (!(type instanceof StringType) && !(type instanceof IntegralType)) {
      throw new InvalidKeysException("Invalid table " + source + ": its column layer is " + type.sql()
          + ", must be STRING or an integer");
    }
  }

  /** A slot that is no integer, or none of 64 bits, would become another by a cast. */
  private static void requireWholeSlots(String source, Dataset<Row> table) {
    DataType type = table.schema().apply("slot").dataType();
    if (type.equals(DataTypes.LongType) || type.equals(DataTypes.IntegerType) || type.equals(DataTypes.ShortType)
        || type.equals(DataTypes.ByteType)) {
      return;
    }

    if (!(type instanceof NumericType)) {
      throw new InvalidKeysException("Invalid table " + source + ": its column slot is " + type.sql()
          + ", must be BIGINT or another number");
    }

    Column slot = col("slot");
    Column whole = slot.try_cast("bigint");
    List<Row> bad = table.where(slot.isNotNull().and(whole.isNull().or(whole.cast(type).notEqual(slot))))
        .select(col("layer").cast("string"), slot.cast("string"))
        .limit(1)
        .collectAsList();
    if (!bad.isEmpty()) {
      throw new InvalidKeysException("Invalid table " + source + ": layer " + bad.get(0).getString(0) + " has a row of "
          + "slot " + bad.get(0).getString(1) + ", must be an integer of 64 bits");
    }
  }

  /** Names, lengths and times of the files that it is read from; empty where Spark knows of none. */
  private static String files(Dataset<Row> table, Configuration conf) throws IOException {
    StringBuilder state = new StringBuilder();
    for (String file : new TreeSet<>(Arrays.asList(table.inputFiles()))) {
      Path path = new Path(URI.create(file));
      FileStatus status = path.getFileSystem(conf).getFileStatus(path);
      state.append(file).append(' ').append(status.getLen()).append(' ').append(status.getModificationTime())
          .append('\n');
    }

    return state.toString();
  }

  private List<Layer> summarise() {
    Column keyBytes = isBinary ? length(col("key")) : size(col("key")).multiply(lit(Float.BYTES));
    Column hasSlot = col("slot").geq(lit(0));
    Column hasNull = isBinary ? lit(false) : exists(col("key"), Column::isNull);
    List<Layer> found = new ArrayList<>();
    List<Row> summaries = rows.groupBy("layer").agg(
        count(lit(1)), count("slot"), count("key"), min(keyBytes), max(keyBytes),
        coalesce(max(when(hasSlot, col("slot"))), lit(-1L)), sum(when(hasSlot, 1L).otherwise(0L)),
        min(when(hasNull, col("slot")))).collectAsList();
    for (Row row : summaries) {
      String layer = row.getString(0);
      if (layer == null || row.getLong(1) != row.getLong(2) || row.getLong(1) != row.getLong(3)) {
        throw new InvalidKeysException("Invalid table " + name + ": in layer " + layer + " are rows whose layer, slot "
            + "or key is null; a token without a slot has a negative one");
      }

      if (!row.isNullAt(8)) {
        throw new InvalidKeysException("Invalid table " + name + ": layer " + layer + " has a key with a null among its "
            + "values, that of slot " + row.getLong(8) + "; write a number there, or leave the row out");
      }

      int bytes = row.getInt(4);
      if (bytes != row.getInt(5)) {
        throw new InvalidKeysException("Invalid table " + name + ": keys of layer " + layer + " have from " + bytes
            + " to " + row.getInt(5) + " bytes, must be as many");
      }

      int dim = bytes / type.bytes();
      if (bytes == 0 || bytes % (type.bytes() * Mxfp4Codec.BLOCK) != 0) {
        throw new InvalidKeysException("Invalid table " + name + ": keys of layer " + layer + " have " + bytes
            + " bytes, must be a multiple of " + Mxfp4Codec.BLOCK + " values of " + type);
      }

      found.add(new Layer(layer, dim, type, row.getLong(7), row.getLong(6)));
    }

    if (found.isEmpty()) {
      throw new InvalidKeysException("Invalid table " + name + ": it has no rows");
    }

    return found;
  }

  String name() {
    return name;
  }

  List<Layer> layers() {
    return layers;
  }

  boolean isBinary() {
    return isBinary;
  }

  /** What tells the table from one of the same layers and other keys. */
  String state() {
    return state;
  }

  /** A key and its slot. */
  record SlottedKey(long slot, float[] values) implements Serializable {}

  /** The keys of a layer's first slots, so many at most, in one partition. */
  JavaRDD<SlottedKey> first(String layer, int count) {
    ElementType elements = type;
    boolean binary = isBinary;
    return rows.where(col("layer").equalTo(layer).and(col("slot").geq(lit(0))))
        .select(col("slot"), col("key"))
        .orderBy("slot")
        .limit(count)
        .repartition(1)
        .toJavaRDD()
        .map(row -> new SlottedKey(row.getLong(0), binary ? elements.floats(row.getAs(1)) : floats(row.getList(1))));
  }

  private static float[] floats(List<Float> values) {
    float[] all = new float[values.size()];
    for (int i = 0; i < all.length; i++) {
      all[i] = values.get(i);
    }

    return all;
  }

  /** Rows (range, slot, key) of some ranges, each in the partition of its range's number. */
  RDD<InternalRow> partitioned(KeyPlan plan, List<Integer> ranges) {
    List<Column> first = new ArrayList<>();
    List<Column> slotsOfRange = new ArrayList<>();
    for (CacheRange range : plan.ranges()) {
      if (range.first() == 0) {
        CacheTensor tensor = plan.tensors().get(range.tensor());
        first.addAll(List.of(lit(tensor.layer()), lit(range.id())));
        slotsOfRange.addAll(List.of(lit(tensor.layer()),
            lit((long) KeyPlan.unitsOfRange(tensor.unitBytes()) * plan.options().pageTokens())));
      }
    }

    Column range = element_at(map(first.toArray(Column[]::new)), col("layer"))
        .plus(floor(col("slot").divide(element_at(map(slotsOfRange.toArray(Column[]::new)), col("layer")))))
        .cast("int");
    return rows.where(col("slot").geq(lit(0)))
        .select(range.as("range"), col("slot"), col("key"))
        .where(col("range").isin(ranges.toArray()))
        .repartitionById(plan.ranges().size(), col("range"))
        .queryExecution()
        .toRdd();
  }
}
