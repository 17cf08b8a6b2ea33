package org.sparkfp4.jobs;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.output.CheckpointPublisher;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.OutputLock;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.SourceChecksums;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.report.ExpertLoad;
import org.sparkfp4.report.RunReport;
import org.sparkfp4.report.Stages;

/** A checkpoint of finished shards: the checksums of its source, what stands beside the shards, the run's report. */
final class CheckpointPublication implements Publication {
  private final SparkSession spark;
  private final QuantizationPlan plan;
  private final ModelFamily family;
  private final OutputFolder output;
  private final CheckpointPublisher publisher;
  private final PlanSummary summary;
  private final ExpertLoad load;
  private final Stages stages;

  /**
   * @param summary of the plan and the files that the run ends with, for the report
   * @param load tokens of each expert, for the report; null where statistics say nothing of them
   * @param stages takes what is done and goes into the report
   */
  CheckpointPublication(
      SparkSession spark,
      QuantizationPlan plan,
      ModelFamily family,
      OutputFolder output,
      CheckpointPublisher publisher,
      PlanSummary summary,
      ExpertLoad load,
      Stages stages) {
    this.spark = spark;
    this.plan = plan;
    this.family = family;
    this.output = output;
    this.publisher = publisher;
    this.summary = summary;
    this.load = load;
    this.stages = stages;
  }

  @Override
  public void publish(List<ShardRecord> records, OutputLock lock, Configuration conf) throws IOException {
    SourceChecksums.Found sums = new SourceChecksums(spark, plan.input(), plan.sources()).find(records);
    stages.end("complete the source's checksums", sums.bytesRead(), 0);
    publisher.publish(records, sums.checksums(), lock, conf);
    stages.end("check what was written and publish it", 0, 0);
    AtomicFile.write(output.fs(), output.report(), report(records, output.path()).json());
  }

  /**
   * What the run tells, so far.
   *
   * @param folder the output that it tells of: not the shards' own where these are converted
   */
  RunReport report(List<ShardRecord> records, Path folder) {
    return RunReport.ofQuantize(
        Version.product(), plan, summary, family, records, folder.toString(), load, stages);
  }
}
