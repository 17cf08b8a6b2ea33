package org.sparkfp4.plan;

/**
 * A part of a unit that is read, encoded and written at once: a row of the planned source.
 *
 * @param unit the unit's number
 * @param index number of the slab in its unit, from 0
 * @param member the member that it is cut from, or {@link #ALL_MEMBERS} when it is the whole unit
 * @param rowOffset first row of that member; 0 for a whole unit
 * @param rows rows of that member; 0 for a whole unit
 */
public record Slab(int unit, int index, int member, long rowOffset, long rows) {
  public static final int ALL_MEMBERS = -1;

  /** Whether the slab is all of its unit. */
  public boolean isWhole() {
    return member == ALL_MEMBERS;
  }
}
