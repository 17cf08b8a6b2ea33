package org.sparkfp4.output;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.layouts.IndexFile;
import org.sparkfp4.plan.QuantizationPlan;

/** Turns finished shards of activations into an output: its manifest, and at last the index. */
public final class ActivationPublisher {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private final OutputFolder output;
  private final QuantizationPlan plan;
  private final String producer;

  /** {@code producer} is the product's name and version. */
  public ActivationPublisher(OutputFolder output, QuantizationPlan plan, String producer) {
    this.output = output;
    this.plan = plan;
    this.producer = producer;
  }

  /**
   * Writes manifest and index.
   *
   * @param records the record of every shard of the plan
   */
  public void publish(List<ShardRecord> records, OutputLock lock, Configuration conf) throws IOException {
    if (records.size() != plan.shards().size()) {
      throw new IllegalStateException("Cannot publish " + output.path() + ": " + records.size()
          + " shards are finished, the plan has " + plan.shards().size());
    }

    output.removeStrayShards(plan);
    Manifest manifest = new Manifest(
        producer, plan.fingerprint(), plan.input(), plan.family(), plan.options(), plan.sources(), records, List.of());
    write(Manifest.FILE, JSON.writeValueAsBytes(manifest));
    lock.requireHeld();
    write(OutputFolder.INDEX, JSON.writeValueAsBytes(IndexFile.of(plan)));
  }

  private void write(String name, byte[] content) throws IOException {
    AtomicFile.write(output.fs(), new Path(output.path(), name), content);
  }
}
