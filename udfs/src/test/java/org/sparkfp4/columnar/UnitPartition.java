package org.sparkfp4.columnar;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.read.InputPartition;
import org.sparkfp4.functions.WeightRow;

/** Every {@code count}-th of the units 0, step, 2 * step and so on, from {@code index} on. */
record UnitPartition(int index, int count, int units, int step, int rows, int nan, String[] columns)
    implements InputPartition {
  static final int NAN_ELEMENT = 5;

  /** The unit of that number: some have no data, some a known amax. */
  static WeightRow unit(int number) {
    WeightRow row = WeightRow.random(number);
    if (number % 7 == 3) {
      return row.withoutData();
    }

    return number % 5 == 4 ? row.withAmax(0.5f) : row;
  }

  List<WeightRow> load(List<Integer> numbers) {
    return numbers.stream().map(n -> n == nan ? unit(n).withNaN(0, NAN_ELEMENT) : unit(n)).toList();
  }

  /** The unit numbers of each batch. */
  List<List<Integer>> batches() {
    List<Integer> own = IntStream.range(0, units)
        .filter(unit -> unit % count == index)
        .mapToObj(unit -> unit * step)
        .toList();
    List<List<Integer>> batches = new ArrayList<>();
    for (int start = 0; start < own.size(); start += rows) {
      batches.add(own.subList(start, Math.min(own.size(), start + rows)));
    }

    return batches;
  }
}
