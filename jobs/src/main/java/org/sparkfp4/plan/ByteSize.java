package org.sparkfp4.plan;

import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A number of bytes as people write it: {@code 16GiB}, {@code 5GB}, {@code 1.5 TB}, {@code 4096}. KB, MB, GB, TB are
 * powers of 1000; KiB, MiB, GiB, TiB powers of 1024. What is written is in the former, as disks, hubs of models and rates
 * are.
 */
public record ByteSize(long bytes) {
  private static final Pattern FORM = Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*([A-Za-z]*)");
  private static final Map<String, Long> UNITS = Map.of(
      "", 1L, "b", 1L,
      "kb", 1_000L, "mb", 1_000_000L, "gb", 1_000_000_000L, "tb", 1_000_000_000_000L,
      "kib", 1L << 10, "mib", 1L << 20, "gib", 1L << 30, "tib", 1L << 40);

  /**
   * Reads a size.
   *
   * @throws IllegalArgumentException when it is no size, or one of less than a byte or over 2^63 - 1 bytes
   */
  public static ByteSize parse(String text) {
    Matcher matcher = FORM.matcher(text.strip());
    Long unit = matcher.matches() ? UNITS.get(matcher.group(2).toLowerCase(Locale.ROOT)) : null;
    double bytes = unit == null ? 0 : Double.parseDouble(matcher.group(1)) * unit;
    if (bytes < 1 || bytes >= 0x1p63) {
      throw new IllegalArgumentException("Invalid size: " + text + " (say for example 16GiB, 5GB or 4096)");
    }

    return new ByteSize((long) bytes);
  }

  /** A size for a reader, such as {@code 15.91 GB}: in the largest unit that leaves a digit before the point. */
  public static String format(long bytes) {
    String[] names = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = bytes;
    int unit = 0;
    while (value >= 1000 && unit < names.length - 1) {
      value /= 1000;
      unit++;
    }

    return unit == 0 ? bytes + " bytes" : String.format(Locale.ROOT, "%.2f %s", value, names[unit]);
  }

  @Override
  public String toString() {
    return format(bytes);
  }
}
