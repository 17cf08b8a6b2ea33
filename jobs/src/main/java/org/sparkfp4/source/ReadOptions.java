package org.sparkfp4.source;

import java.util.List;
import java.util.Locale;
import java.util.function.UnaryOperator;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What the options of a read ask for. An option beats the session's {@code spark.fp4.*}, which beats the default.
 *
 * @param path folder or file of a stand-alone read; null for a planned one
 * @param plan path of the plan; null for a stand-alone read
 * @param shards the shards to read, as {@link org.sparkfp4.plan.ShardSelection} reads them; null for all
 * @param cutOnly whether only the slabs of cut units are wanted
 * @param amax path of the amax file; null for none
 * @param everyFile whether a stand-alone read takes all safetensors files of a folder, which need be no checkpoint
 * @param slabBytes about how many bytes a slab of a stand-alone read has
 * @param mode how local files are read
 */
record ReadOptions(
    String path,
    String plan,
    String shards,
    boolean cutOnly,
    String amax,
    boolean everyFile,
    long slabBytes,
    ReadMode mode) {
  private static final String SESSION = "spark.fp4.";
  private static final String SLAB_BYTES = "slabBytes";
  private static final String READ = "read";

  static final List<String> SETTINGS = List.of(SESSION + SLAB_BYTES, SESSION + READ);

  /**
   * Parses options.
   *
   * @param session gives the value of a key of the session's configuration, or null
   */
  static ReadOptions parse(CaseInsensitiveStringMap options, UnaryOperator<String> session) {
    String plan = options.get("plan");
    String path = options.get("path");
    if (plan == null && path == null) {
      throw new IllegalArgumentException(
          "Cannot read safetensors: no path; give load() a folder or file, or the option plan");
    }

    return new ReadOptions(
        path,
        plan,
        options.get("shards"),
        cutOnly(options.getOrDefault("slabs", "all")),
        options.get("amax"),
        everyFile(options.getOrDefault("files", "checkpoint")),
        slabBytes(optionOr(options, SLAB_BYTES, session, "16m")),
        ReadMode.of(optionOr(options, READ, session, "mmap")));
  }

  /** The columns that a read with these options has; needs no path. */
  static StructType schema(CaseInsensitiveStringMap options) {
    return options.containsKey("plan") ? SourceSchema.PLANNED : SourceSchema.STAND_ALONE;
  }

  StructType schema() {
    return plan != null ? SourceSchema.PLANNED : SourceSchema.STAND_ALONE;
  }

  RowPlanner planner() {
    return plan != null ? new PlannedRows(plan, shards, cutOnly, amax) : new StandaloneRows(path, everyFile, slabBytes);
  }

  private static String optionOr(
      CaseInsensitiveStringMap options, String key, UnaryOperator<String> session, String fallback) {
    if (options.containsKey(key)) {
      return options.get(key);
    }

    String configured = session.apply(SESSION + key);
    return configured != null ? configured : fallback;
  }

  private static boolean cutOnly(String value) {
    return switch (value.toLowerCase(Locale.ROOT)) {
      case "all" -> false;
      case "cut" -> true;
      default -> throw new IllegalArgumentException("Invalid option slabs: \"" + value + "\"; give all or cut");
    };
  }

  private static boolean everyFile(String value) {
    return switch (value.toLowerCase(Locale.ROOT)) {
      case "checkpoint" -> false;
      case "all" -> true;
      default -> throw new IllegalArgumentException("Invalid option files: \"" + value + "\"; give checkpoint or all");
    };
  }

  private static long slabBytes(String value) {
    long bytes = JavaUtils.byteStringAsBytes(value);
    if (bytes <= 0 || bytes > ByteRange.MAX_LENGTH) {
      throw new IllegalArgumentException(
          "Invalid option " + SLAB_BYTES + ": " + value + "; give 1 to " + ByteRange.MAX_LENGTH + " bytes");
    }

    return bytes;
  }
}
