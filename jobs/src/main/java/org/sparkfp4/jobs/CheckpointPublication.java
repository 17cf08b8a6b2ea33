package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.output.CheckpointPublisher;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.SourceChecksums;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.report.Stages;

/** A checkpoint of finished shards: the checksums of its source, what stands beside the shards. */
final class CheckpointPublication implements Publication {
  private final SparkSession spark;
  private final QuantizationPlan plan;
  private final CheckpointPublisher publisher;
  private final Stages stages;
  private boolean done;

  /** @param stages takes what is done */
  CheckpointPublication(
      SparkSession spark, QuantizationPlan plan, CheckpointPublisher publisher, Stages stages) {
    this.spark = spark;
    this.plan = plan;
    this.publisher = publisher;
    this.stages = stages;
  }

  @Override
  public void publish(List<ShardRecord> records, OutputLock lock, Configuration conf) throws IOException {
    SourceChecksums.Found sums = new SourceChecksums(spark, plan.input(), plan.sources()).find(records);
    stages.end("complete the source's checksums", sums.bytesRead(), 0);
    publisher.publish(records, sums.checksums(), lock, conf);
    stages.end("check what was written and publish it", 0, 0);
    done = true;
  }

  /** Whether it was this run that published the checkpoint. */
  boolean isDone() {
    return done;
  }
}
