package org.sparkfp4.checkpoint;

import java.util.Comparator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The order in which people count layers: layers.2 before layers.10. */
public final class NaturalOrder implements Comparator<String> {
  private static final Pattern PIECE = Pattern.compile("[0-9]+|[^0-9]+");

  @Override
  public int compare(String a, String b) {
    Matcher left = PIECE.matcher(a);
    Matcher right = PIECE.matcher(b);
    while (left.find()) {
      if (!right.find()) {
        return 1;
      }

      int order = comparePieces(left.group(), right.group());
      if (order != 0) {
        return order;
      }
    }

    return right.find() ? -1 : a.compareTo(b);
  }

  private static int comparePieces(String a, String b) {
    if (!isNumber(a) || !isNumber(b)) {
      return a.compareTo(b);
    }

    String left = a.replaceFirst("^0+", "");
    String right = b.replaceFirst("^0+", "");
    return left.length() != right.length() ? Integer.compare(left.length(), right.length()) : left.compareTo(right);
  }

  private static boolean isNumber(String piece) {
    char first = piece.charAt(0);
    return first >= '0' && first <= '9';
  }
}
