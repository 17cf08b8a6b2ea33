package org.sparkfp4.keys;

import java.io.Serializable;

/**
 * Consecutive units of one output tensor: what a task makes at once.
 *
 * @param id number of the range in the plan
 * @param tensor number of its tensor
 * @param first its first unit
 * @param count its units
 */
record CacheRange(int id, int tensor, long first, int count) implements Serializable {
  /** Name of the file that holds it until its layer is whole. */
  String file() {
    return String.format("part-%06d.bin", id);
  }
}
