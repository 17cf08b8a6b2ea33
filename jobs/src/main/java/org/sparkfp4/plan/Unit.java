package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.formats.SourceScheme;

/**
 * The linear layers that share one global scale: an expert's gate and up, a lone down, q with k and v.
 *
 * <p>They have one scheme and one K. They may lie apart, even in different files.
 *
 * @param id number of the unit in its plan, from 0, dense
 * @param name what messages and plans call it: the members' common prefix and their own last parts
 * @param scheme how every member's weight is stored, as {@link SourceScheme#parse} takes it
 * @param cols K, the contraction dimension, a multiple of 16
 * @param members one to three layers, in the order in which runtimes fuse them
 */
public record Unit(int id, String name, String scheme, long cols, List<Member> members) {
  /** Layers of a unit at most: so many columns of payloads a row has, and as many of scales behind them. */
  public static final int MAX_MEMBERS = 3;

  private static final int STRIP = 16;

  public Unit {
    members = List.copyOf(members);
  }

  /** Bytes of all members' weights in the source, scales included. */
  @JsonIgnore
  public long sourceBytes() {
    return members.stream().mapToLong(Member::sourceBytes).sum();
  }

  /** Bytes of so many rows of a member's weight in the source, without scales. */
  public long dataBytes(long rows) {
    return SourceScheme.parse(scheme).dataBytes(rows, cols);
  }

  /** Bytes of the scales of so many rows that begin where a block does; 0 where there are none. */
  public long scaleBytes(long rows) {
    return SourceScheme.parse(scheme).scaleBytes(rows, cols);
  }

  /** Where the scales of a row that begins a block are, counted from the first scale's byte. */
  public long scaleOffset(long row) {
    return SourceScheme.parse(scheme).scaleOffset(row, cols);
  }

  /** Whether the unit is read by rows, its amax found by a job of its own, since it is larger than a slab may be. */
  public boolean isCut(long slabLimit) {
    return sourceBytes() > slabLimit;
  }

  /**
   * The slabs in which the unit is read, in order. A unit within the limit is one slab of all members; a larger one is
   * cut member by member into slabs of whole rows, which begin where a scale's block does.
   */
  public List<Slab> slabs(long slabLimit) {
    if (!isCut(slabLimit)) {
      return List.of(new Slab(id, 0, Slab.ALL_MEMBERS, 0, 0));
    }

    long rowsPerSlab = rowsPerSlab(slabLimit);
    List<Slab> slabs = new ArrayList<>();
    for (int m = 0; m < members.size(); m++) {
      long rows = members.get(m).weight().rows();
      for (long row = 0; row < rows; row += rowsPerSlab) {
        slabs.add(new Slab(id, slabs.size(), m, row, Math.min(rowsPerSlab, rows - row)));
      }
    }

    return slabs;
  }

  private long rowsPerSlab(long slabLimit) {
    long block = Math.max(SourceScheme.parse(scheme).blockRows(), members.get(0).rowsTogether());
    long rows = Math.max(block, slabLimit / dataBytes(block) * block);
    // whole strips of 16 blocks, so that a member's error sums do not depend on where it was cut
    long step = block % STRIP == 0 ? block : block * STRIP;
    return rows >= step ? rows / step * step : rows;
  }
}
