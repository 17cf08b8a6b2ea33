package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.Arrays;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.output.Manifest;

/**
 * What is known of how a checkpoint's scales were chosen.
 *
 * @param name the scale search of the manifest, or null without one
 * @param isMoved whether codes and scales come from a checkpoint in another layout, whose arithmetic may be another
 */
record ScaleClaim(String name, boolean isMoved) implements Serializable {
  /** What can be held against the source once more. */
  enum Extent {
    /** Codes and block scales. */
    ALL,
    /** The codes under the block scales that are there: those follow from statistics. */
    CODES,
    /** Nothing: there are many ways to them. */
    NOTHING
  }

  static ScaleClaim of(Manifest manifest) {
    return new ScaleClaim(
        manifest == null || manifest.options() == null ? null : manifest.options().scaleSearch(),
        manifest != null && manifest.isConverted());
  }

  /**
   * The search that is to be repeated, as far as {@link #extent} goes. Where no manifest tells, the global scale does:
   * searches leave more room above it.
   */
  ScaleSearch search(SourceWeight source, Nvfp4Recipe recipe, float amax, float stored) {
    if (name == null) {
      float rounded = source.globalScale(recipe, ScaleSearch.RTN, amax);
      float searched = source.globalScale(recipe, ScaleSearch.SWEEP, amax);
      boolean isSearched = !GlobalScaleCheck.isNear(stored, rounded) && GlobalScaleCheck.isNear(stored, searched);
      return isSearched ? ScaleSearch.WEIGHTED : ScaleSearch.RTN;
    }

    // One that is not known here has the global scale of the others.
    return Arrays.stream(ScaleSearch.values()).filter(search -> search.optionName().equals(name)).findFirst()
        .orElse(ScaleSearch.WEIGHTED);
  }

  Extent extent(ScaleSearch search) {
    if (search != ScaleSearch.WEIGHTED) {
      return Extent.ALL;
    }

    return search.optionName().equals(name) ? Extent.CODES : Extent.NOTHING;
  }
}
