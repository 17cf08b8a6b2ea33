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
    BandSums own = bands.floorEntry(row).getValue();
    for (BandSums band : bands.headMap(own.first()).values()) {
      // what is left of the diagonal is there as its mirror image
      double[] sums = heldOut ? band.heldOut() : band.full();
      int stride = band.cols() - band.first();
      for (int j = 0; j < band.width(); j++) {
        into[band.first() + j] = sums[j * stride + row - band.first()];
      }
    }

    int stride = own.cols() - own.first();
    System.arraycopy(
        heldOut ? own.heldOut() : own.full(), (row - own.first()) * stride, into, own.first(), stride);
  }
}
