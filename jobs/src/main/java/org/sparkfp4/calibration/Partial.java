package org.sparkfp4.calibration;

import java.io.Serializable;

/** What a part of the activations comes to. */
sealed interface Partial extends Serializable permits BandSums, Partial.Refused {
  /** The activations cannot be used. It travels as a result, since Spark would run a failed task again. */
  record Refused(String reason) implements Partial {}
}
