package org.sparkfp4.formats;

/** What the codes of a stored-quantized weight are. */
public enum CodeType {
  E4M3(8), INT4(4), E2M1(4);

  private final int bits;

  CodeType(int bits) {
    this.bits = bits;
  }

  public int bits() {
    return bits;
  }
}
