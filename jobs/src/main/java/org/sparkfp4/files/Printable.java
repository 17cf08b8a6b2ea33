package org.sparkfp4.files;

/** Names from files on their way to a terminal. */
public final class Printable {
  private Printable() {}

  /**
   * The text with each control character as its escape: a tensor's name may hold a line break, which would make two
   * lines of a message, or a sequence that a terminal obeys.
   */
  public static String of(String text) {
    if (text.chars().noneMatch(Character::isISOControl)) {
      return text;
    }

    StringBuilder printable = new StringBuilder();
    for (char c : text.toCharArray()) {
      switch (c) {
        case '\n' -> printable.append("\\n");
        case '\r' -> printable.append("\\r");
        case '\t' -> printable.append("\\t");
        default -> printable.append(Character.isISOControl(c) ? String.format("\\u%04x", (int) c) : String.valueOf(c));
      }
    }

    return printable.toString();
  }
}
