package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Deals items out to shards.
 *
 * <p>The sizes depend on the model alone, never on the cluster. A safetensors file has no gaps, so what keeps every
 * tensor aligned is the order of the items: those whose length is a multiple of the widest element first.
 */
final class ShardPacker {
  private static final long SMALLEST_TARGET = 256L << 20;
  private static final long LARGEST_TARGET = 5_000_000_000L;
  private static final long TASKS = 512;

  private final List<ItemDraft> items;
  private final long target;

  /**
   * @param items the items in the source's order
   * @param maxShardBytes bytes above which a shard holds one item only; 0 for a size that the items' total gives
   */
  ShardPacker(List<ItemDraft> items, long maxShardBytes) {
    this.items = items;
    long total = items.stream().mapToLong(ItemDraft::length).sum();
    this.target = maxShardBytes > 0
        ? maxShardBytes
        : Math.max(SMALLEST_TARGET, Math.min(LARGEST_TARGET, total / TASKS));
  }

  /** The shards, in the source's order of their first items. */
  List<OutputShard> shards() {
    List<List<ItemDraft>> packed = pack(evenLimit());
    List<OutputShard> shards = new ArrayList<>();
    for (int i = 0; i < packed.size(); i++) {
      shards.add(shard(i, packed.size(), packed.get(i)));
    }

    return shards;
  }

  /** The smallest limit that makes no more shards than the target does: the last shard is then no leftover. */
  private long evenLimit() {
    int count = pack(target).size();
    long low = 0;
    long high = target;
    while (low + 1 < high) {
      long middle = (low + high) >>> 1;
      if (pack(middle).size() <= count) {
        high = middle;
      } else {
        low = middle;
      }
    }

    return high;
  }

  private List<List<ItemDraft>> pack(long limit) {
    List<List<ItemDraft>> shards = new ArrayList<>();
    List<ItemDraft> open = null;
    long bytes = 0;
    for (ItemDraft item : items) {
      if (isAlone(item)) {
        shards.add(List.of(item));
        continue;
      }

      if (open == null || bytes + item.length() > limit) {
        open = new ArrayList<>();
        shards.add(open);
        bytes = 0;
      }

      open.add(item);
      bytes += item.length();
    }

    return shards;
  }

  /**
   * Whether an item has a shard of its own: it is larger than the target, or its length (of a unit whose rows are no
   * multiple of four) would leave what follows it unaligned.
   */
  private boolean isAlone(ItemDraft item) {
    return item.length() > target || item.length() % item.alignment() != 0;
  }

  private static OutputShard shard(int index, int count, List<ItemDraft> items) {
    int widest = items.stream().mapToInt(ItemDraft::alignment).max().orElse(1);
    List<ItemDraft> ordered = new ArrayList<>(items);
    ordered.sort(Comparator.comparingLong((ItemDraft item) -> -evenness(item.length(), widest)));
    List<ShardItem> placed = new ArrayList<>();
    long begin = 0;
    for (ItemDraft item : ordered) {
      placed.add(item.at(begin));
      begin += item.length();
    }

    return new OutputShard(
        index, String.format("model-%05d-of-%05d.safetensors", index + 1, count), begin, placed);
  }

  /** The largest power of two, no larger than {@code widest}, that divides a length. */
  private static long evenness(long length, int widest) {
    return length == 0 ? widest : Math.min(widest, Long.lowestOneBit(length));
  }
}
