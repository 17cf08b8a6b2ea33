package org.sparkfp4.formats;

/**
 * How the scale of each block is chosen; the definition that every kernel follows.
 *
 * <p>All is binary32, one rounding an operation, no contraction. With the global scale G of a recipe as stored, the
 * candidate of E4M3 code c, from 1 to 126, is {@code d(c) = } {@link Nvfp4Recipe#dequantFactor}{@code (c, G)}: what a
 * runtime multiplies codes by is what a search compares. The codes of a block under d are those that are written
 * for it, and its loss is
 *
 * <pre>
 * RTN, FOUR_OVER_SIX, SWEEP     e[i] = |w[i]| - m[i] * d, the loss is the tree sum of e[i] * e[i]
 * WEIGHTED, diagonal            the tree sum of h[i] * (e[i] * e[i])
 * WEIGHTED, local Hessian       s[i] = w[i] - e2m1(code[i]) * d, t[i] = the tree sum over j of H[i][j] * s[j];
 *                               the loss is the tree sum of s[i] * t[i]
 * </pre>
 *
 * <p>m being the codes' magnitudes and the tree that of {@link ErrorSums}. A loss that is NaN counts as infinite. The
 * smallest loss wins, of equal ones the lowest code. The candidates are
 *
 * <ul>
 *   <li>{@link #RTN}: the recipe's own {@link Nvfp4Recipe#blockScale}
 *   <li>{@link #FOUR_OVER_SIX}: that, and the same rule with 4 in the place of 6, so that the largest weight becomes 4;
 *       of equal losses the first wins
 *   <li>{@link #SWEEP}, {@link #WEIGHTED}: all 126 codes
 * </ul>
 *
 * <p>A block keeps the scale of RTN under the same global scale where its largest |w| is outside {@link #LEAST} to
 * {@link #MOST}, zero among them: squares of errors would leave the normal range of binary32; and where no loss is
 * finite. Where all 16 (256) values of a block's importance are zero it weighs nothing and the block is swept without.
 *
 * <p>So no block has a larger loss than RTN gives it with the same global scale. The searches leave room above the
 * largest block: {@link #globalScale} normalises by 6 * 256 where RTN does by 6 * 448. An exact cast of MXFP4 is the
 * same under every search.
 */
public enum ScaleSearch {
  /** Round to nearest: the largest weight of the block becomes 6. The producers' own bytes. */
  RTN("rtn"),
  /** The largest weight becomes 6 or 4, whichever errs less. */
  FOUR_OVER_SIX("four-over-six"),
  /** The scale of the smallest squared error among all. */
  SWEEP("sweep"),
  /** The scale of the smallest squared error of the layer's output, as activation statistics tell it. */
  WEIGHTED("weighted");

  /** Blocks are searched whose largest |w| is at least this. */
  public static final float LEAST = 0x1p-50f;

  /** Blocks are searched whose largest |w| is at most this. */
  public static final float MOST = 0x1p60f;

  private final String optionName;

  ScaleSearch(String optionName) {
    this.optionName = optionName;
  }

  /**
   * The search of that name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  public static ScaleSearch named(String name) {
    StringBuilder names = new StringBuilder();
    for (ScaleSearch search : values()) {
      if (search.optionName.equals(name)) {
        return search;
      }

      names.append(names.isEmpty() ? "" : ", ").append(search.optionName);
    }

    throw new IllegalArgumentException("Invalid scale search: " + name + "; known are " + names);
  }

  /** The name that {@code --scale-search} takes. */
  public String optionName() {
    return optionName;
  }

  /**
   * The global scale as the checkpoint stores it. Of a search it is amax / 1536 for ModelOpt and 1536 / amax for
   * compressed-tensors, each rounded once; {@link Nvfp4Recipe#globalScale} of RTN and of a zero tensor.
   *
   * @param amax the largest |w| of all tensors that share the scale
   * @param type the type of the source's elements
   * @throws IllegalArgumentException if {@code amax} is negative or not finite
   */
  public float globalScale(Nvfp4Recipe recipe, float amax, ElementType type) {
    return this == RTN || Nvfp4.isZero(amax) ? recipe.globalScale(amax, type) : recipe.searchedGlobalScale(amax);
  }
}
