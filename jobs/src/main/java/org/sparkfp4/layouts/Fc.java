package org.sparkfp4.layouts;

/** The two matrix products of an expert. */
public enum Fc {
  /** Gate and up, or up alone: from the model's width to the expert's. */
  FC1,
  /** Down: back again. */
  FC2
}
