package org.sparkfp4.layouts;

/** A tensor that the experts of a layer have together. */
public enum StackPart {
  FC1_CODES, FC1_SCALES, FC1_GLOBAL, FC2_CODES, FC2_SCALES, FC2_GLOBAL,
  /** Scale of FC1's input, one an expert: Edge-LLM's exporter has ones. */
  FC1_INPUT,
  /** Scale of FC2's input, likewise. */
  FC2_INPUT,
  /** What the router adds to an expert's score. */
  SCORE_BIAS;

  /** The product that the part belongs to; null for the bias. */
  public Fc fc() {
    return switch (this) {
      case FC1_CODES, FC1_SCALES, FC1_GLOBAL, FC1_INPUT -> Fc.FC1;
      case FC2_CODES, FC2_SCALES, FC2_GLOBAL, FC2_INPUT -> Fc.FC2;
      case SCORE_BIAS -> null;
    };
  }
}
