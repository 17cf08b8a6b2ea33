package org.sparkfp4.calibration;

import java.io.Serializable;

/**
 * A name that activations come under.
 *
 * @param name a linear layer, or what holds routed experts
 * @param cols K, a multiple of 16
 * @param firstEntry number of the entry that its sums are of; of experts, that of expert 0
 * @param experts how many experts share the input, each with an entry of its own; 0 for a linear layer
 */
record InputModule(String name, int cols, int firstEntry, int experts) implements Serializable {
  /** How many entries a row of the input may add to. */
  int entries() {
    return Math.max(1, experts);
  }
}
