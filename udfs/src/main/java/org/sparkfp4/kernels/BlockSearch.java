package org.sparkfp4.kernels;

import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Importance;
import org.sparkfp4.formats.ScaleChoice;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.Weighting;

/**
 * How a call chooses the scales of its blocks; all its segments have the same columns and so the same statistics.
 *
 * @param search which of the searches
 * @param weighting what {@link ScaleSearch#WEIGHTED} weighs by, else null
 * @param importance address of {@link Weighting#values} binary32 values, as {@link Importance} has checked them; 0
 *     where there is no weighting
 */
public record BlockSearch(ScaleSearch search, Weighting weighting, long importance) {
  /** The producers' own rule. */
  public static final BlockSearch RTN = of(ScaleSearch.RTN);

  /** @throws IllegalArgumentException if there is a weighting without importance, or the other way round */
  public BlockSearch {
    boolean weighted = search == ScaleSearch.WEIGHTED;
    if (weighted != (weighting != null) || weighted != (importance != 0)) {
      throw new IllegalArgumentException("Invalid scale search: " + search.optionName() + " with weighting " + weighting
          + " and importance at address " + importance);
    }
  }

  /** A search that needs no statistics. */
  public static BlockSearch of(ScaleSearch search) {
    return new BlockSearch(search, null, 0);
  }

  /** The search that minimises what these statistics weigh. */
  public static BlockSearch weighted(Weighting weighting, long importance) {
    return new BlockSearch(ScaleSearch.WEIGHTED, weighting, importance);
  }

  /** The same for the reference. */
  ScaleChoice choice(long cols) {
    if (weighting == null) {
      return ScaleChoice.of(search);
    }

    int bytes = Math.toIntExact(Float.BYTES * weighting.values(cols));
    return new ScaleChoice(search, Importance.of(weighting, MemoryUtil.directBuffer(importance, bytes)));
  }
}
