package org.sparkfp4.calibration;

import java.io.Serializable;

/**
 * What sums are of.
 *
 * @param entry number of the entry
 * @param band number of the band of columns
 * @param shard number of the file that the entry is kept in
 */
record EntryBand(int entry, int band, int shard) implements Serializable {}
