package org.sparkfp4.convert;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Deals items out to files {@code model-XXXXX-of-XXXXX.safetensors}. Sizes depend on the items alone, never on the
 * cluster. A file has no gaps, so what keeps tensors aligned is the order: items whose length is a multiple of the widest
 * element first.
 */
final class FilePacker {
  private static final long SMALLEST_TARGET = 256L << 20;
  private static final long LARGEST_TARGET = 5_000_000_000L;
  private static final long TASKS = 512;

  private FilePacker() {}

  /**
   * The files.
   *
   * @param items in the source's order
   * @param maxBytes above which a file has one item only; 0 for a size that the items' total gives
   */
  static List<ConvertFile> pack(List<ConvertItem> items, long maxBytes) {
    long total = items.stream().mapToLong(ConvertItem::length).sum();
    long target = maxBytes > 0 ? maxBytes : Math.max(SMALLEST_TARGET, Math.min(LARGEST_TARGET, total / TASKS));
    List<List<ConvertItem>> packed = new ArrayList<>();
    List<ConvertItem> open = null;
    long bytes = 0;
    for (ConvertItem item : items) {
      if (item.length() > target || item.length() % item.alignment() != 0) {
        packed.add(List.of(item));
        continue;
      }

      if (open == null || bytes + item.length() > target) {
        open = new ArrayList<>();
        packed.add(open);
        bytes = 0;
      }

      open.add(item);
      bytes += item.length();
    }

    List<ConvertFile> files = new ArrayList<>();
    for (int i = 0; i < packed.size(); i++) {
      files.add(new ConvertFile(
          String.format("model-%05d-of-%05d.safetensors", i + 1, packed.size()), placed(packed.get(i)), false));
    }

    return files;
  }

  /** The items one behind the other, from a file's first byte on, aligned ones first. */
  private static List<ConvertItem> placed(List<ConvertItem> items) {
    int widest = items.stream().mapToInt(ConvertItem::alignment).max().orElse(1);
    return inOrder(items.stream()
        .sorted(Comparator.comparingLong((ConvertItem item) -> -evenness(item.length(), widest)))
        .toList());
  }

  /** The items one behind the other, in their order. */
  static List<ConvertItem> inOrder(List<ConvertItem> items) {
    List<ConvertItem> placed = new ArrayList<>();
    long begin = 0;
    for (ConvertItem item : items) {
      placed.add(item.from(begin));
      begin += item.length();
    }

    return placed;
  }

  private static long evenness(long length, int widest) {
    return length == 0 ? widest : Math.min(widest, Long.lowestOneBit(length));
  }
}
