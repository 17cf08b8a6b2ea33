package org.sparkfp4.formats;

/**
 * How a tensor's block scales are chosen.
 *
 * @param importance what errors weigh; of {@link ScaleSearch#WEIGHTED}, else null
 */
public record ScaleChoice(ScaleSearch search, Importance importance) {
  /** The producers' own rule. */
  public static final ScaleChoice RTN = new ScaleChoice(ScaleSearch.RTN, null);

  /** @throws IllegalArgumentException if importance is missing, or there without use */
  public ScaleChoice {
    if ((search == ScaleSearch.WEIGHTED) != (importance != null)) {
      throw new IllegalArgumentException("Invalid scale search: " + search.optionName()
          + (importance == null ? " without importance" : " has no use for importance"));
    }
  }

  /** A search that needs no statistics. */
  public static ScaleChoice of(ScaleSearch search) {
    return new ScaleChoice(search, null);
  }

  /** The same for blocks that begin behind so many others of the tensor. */
  public ScaleChoice after(long blocks) {
    return importance == null ? this : new ScaleChoice(search, importance.after(blocks));
  }
}
