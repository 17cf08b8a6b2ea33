package org.sparkfp4.verify;

import java.io.Serializable;

/** How often each magnitude of a code and each block scale occurs. */
public final class CodeCounts implements Serializable {
  private static final long serialVersionUID = 1L;

  private final long[] codes = new long[8];
  private final long[] scales = new long[128];

  CodeCounts() {}

  void addCode(int magnitude) {
    codes[magnitude]++;
  }

  void addScale(int scale) {
    scales[scale & 0x7F]++;
  }

  void addAll(CodeCounts others) {
    for (int i = 0; i < codes.length; i++) {
      codes[i] += others.codes[i];
    }

    for (int i = 0; i < scales.length; i++) {
      scales[i] += others.scales[i];
    }
  }

  /** Number of codes of each magnitude: 0, 0.5, 1, 1.5, 2, 3, 4, 6. */
  public long[] codes() {
    return codes.clone();
  }

  /** Number of block scales of each E4M3 code, the sign left out. */
  public long[] scales() {
    return scales.clone();
  }
}
