package org.sparkfp4.verify;

/**
 * A text that is matched against an expression of somebody else's file. A few characters of an expression make a matcher
 * go back and forth for years; here it reads so many characters and no more.
 */
final class BoundedText implements CharSequence {
  /** Far more than a list of alternatives takes for a name of a hundred characters. */
  private static final int READS = 20_000;

  private final String text;
  private int reads;

  /** A matcher read more of a text than any sensible expression makes it read. */
  static final class ReadTooOften extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private ReadTooOften() {
      super("more than " + READS + " characters were read", null, false, false);
    }
  }

  BoundedText(String text) {
    this.text = text;
  }

  @Override
  public char charAt(int index) {
    reads++;
    if (reads > READS + text.length()) {
      throw new ReadTooOften();
    }

    return text.charAt(index);
  }

  @Override
  public int length() {
    return text.length();
  }

  @Override
  public CharSequence subSequence(int from, int to) {
    return text.substring(from, to);
  }

  @Override
  public String toString() {
    return text;
  }
}
