package org.sparkfp4.source;

import java.io.IOException;
import java.util.List;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;

/** Lays out the rows of a scan, on the driver, from headers or a plan. */
interface RowPlanner {
  /**
   * The partitions of a scan.
   *
   * @param names which names the scan wants
   * @param payload whether it reads payloads
   */
  List<SlabPartition> partitions(Configuration configuration, Predicate<String> names, boolean payload)
      throws IOException;
}
