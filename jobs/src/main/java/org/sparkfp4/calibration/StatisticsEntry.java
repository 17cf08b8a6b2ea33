package org.sparkfp4.calibration;

import java.io.Serializable;

/**
 * Statistics to be made.
 *
 * @param module the linear layer whose input they are of
 * @param cols K
 * @param shard number of the file that they are kept in
 */
record StatisticsEntry(String module, int cols, int shard) implements Serializable {}
