package org.sparkfp4.calibration;

import java.util.List;
import java.util.TreeMap;

/** The sums of all bands of an entry; of an entry without tokens there are none. */
final class EntrySums {
  private final StatisticsEntry entry;
  private final TreeMap<Integer, BandSums> bands = new TreeMap<>();

  EntrySums(StatisticsEntry entry) {
    this.entry = entry;
  }

  /** Adds the sums of some tokens, of one band. */
  void add(BandSums band) {
    bands.merge(band.first(), band, (known, more) -> {
      known.add(more);
      return known;
    });
  }

  StatisticsEntry entry() {
    return entry;
  }

  /** The bands, by their columns. */
  List<BandSums> bands() {
    return List.copyOf(bands.values());
  }

  long tokens() {
    return bands.isEmpty() ? 0 : bands.firstEntry().getValue().tokens();
  }

  long heldOutTokens() {
    return bands.isEmpty() ? 0 : bands.firstEntry().getValue().heldOutTokens();
  }

  float amax() {
    return (float) bands.values().stream().mapToDouble(BandSums::amax).max().orElse(0);
  }

  long[] histogram() {
    long[] histogram = new long[BlockAmaxHistogram.BINS];
    for (BandSums band : bands.values()) {
      for (int bin = 0; bin < histogram.length; bin++) {
        histogram[bin] += band.histogram()[bin];
      }
    }

    return histogram;
  }

  /** Fills a row of Σx xᵀ over the held-out tokens or the others, all K columns of it. */
  void productRow(boolean heldOut, int row, double[] into) {
    for (BandSums band : bands.headMap(row, true).values()) {
      // what is left of the diagonal is there as its mirror image
      double[] sums = heldOut ? band.heldOut() : band.full();
      int stride = band.cols() - band.first();
      int end = band.first() + band.width();
      for (int j = band.first(); j < Math.min(row, end); j++) {
        into[j] = sums[(j - band.first()) * stride + row - band.first()];
      }

      if (row < end) {
        System.arraycopy(sums, (row - band.first()) * stride + row - band.first(), into, row, band.cols() - row);
      }
    }
  }
}
