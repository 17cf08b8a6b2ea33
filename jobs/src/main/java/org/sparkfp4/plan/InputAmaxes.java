package org.sparkfp4.plan;

import java.util.List;

/** What is known of the magnitudes of layers' inputs, which their scales are made of. */
public interface InputAmaxes {
  /**
   * The amax of layers that share an input; null where it saw no token.
   *
   * @throws IllegalArgumentException if it is known of two of the layers, and differs
   */
  Float own(List<String> layers);

  /** The largest amax among the same layers of the other experts; null where there is none. */
  Float peers(List<String> layers);
}
