package org.sparkfp4.sink;

import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.sparkfp4.output.ShardRecord;

/** What a task tells the driver of its shard. */
public sealed interface ShardMessage extends WriterCommitMessage {
  /** The shard stands under its final name. */
  record Finished(ShardRecord record) implements ShardMessage {}

  /**
   * The shard can never be written, whatever is tried again: its source is bad. It travels as a message and not as an
   * exception, since Spark would run a failed task again.
   */
  record Refused(int shard, String reason) implements ShardMessage {}
}
