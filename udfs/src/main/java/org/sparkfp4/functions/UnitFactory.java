package org.sparkfp4.functions;

/** Makes the unit of a row of its arguments. */
interface UnitFactory {
  /**
   * @param amax null where it is yet to be found
   * @param importance null where there are no statistics
   */
  WeightUnit unit(Segments segments, Long cols, Float amax, ImportanceBytes importance);
}
