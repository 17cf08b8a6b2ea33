package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.ShardRecord;

/** Makes an output of finished shards. */
interface Publication {
  /**
   * Writes what stands beside the shards, the index last.
   *
   * @param records the record of every shard of the plan
   */
  void publish(List<ShardRecord> records, OutputLock lock, Configuration conf) throws IOException;
}
