package org.sparkfp4.convert;

import java.util.regex.Pattern;
import org.sparkfp4.layouts.LoadingAdvice;
import org.sparkfp4.output.RoundedScales;

/** The README.md of a conversion: the source's, but for what that says of its own layout. */
final class ConvertCard {
  private static final String LAYOUT = "## Layout";
  private static final String HOW = "without quantizing again";
  private static final Pattern HEADINGS = Pattern.compile("(?m)^(?=## )");
  private static final Pattern ROW = Pattern.compile("(?m)^\\| layout \\| [\\w-]+ \\|$");

  private ConvertCard() {}

  /**
   * The card.
   *
   * @param source the source's; empty where it has none
   * @param weightOnly whether activations stay in high precision
   * @param rounded what could not be kept
   * @param producer the product's name and version
   */
  static String text(String source, ConvertPlan plan, boolean weightOnly, RoundedScales rounded, String producer) {
    StringBuilder text = new StringBuilder();
    for (String part : HEADINGS.split(source)) {
      if (!isOfLayout(part)) {
        text.append(part);
      }
    }

    String kept = ROW.matcher(text).replaceAll("| layout | " + plan.target() + " |").stripTrailing();
    return kept + (kept.isEmpty() ? "" : "\n\n")
        + LAYOUT + "\n\n" + ConvertSummary.sentence(plan, producer) + "\n\n" + ConvertSummary.kept(rounded) + "\n\n"
        + LoadingAdvice.text(plan.target(), weightOnly, false);
  }

  /** Whether this product wrote a part for the layout that the source has. */
  private static boolean isOfLayout(String part) {
    return LoadingAdvice.isAdvice(part) || part.startsWith(LAYOUT + "\n") && part.contains(HOW);
  }
}
