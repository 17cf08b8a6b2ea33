package org.sparkfp4.source;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads.
 *
 * @param files the files that its rows' payloads lie in
 * @param rows its rows, in order; may be empty
 */
record SlabPartition(List<SlabFile> files, List<SourceRow> rows) implements InputPartition {
  SlabPartition {
    files = List.copyOf(files);
    rows = List.copyOf(rows);
  }
}
