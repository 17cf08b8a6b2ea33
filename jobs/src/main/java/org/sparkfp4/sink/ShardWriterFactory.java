package org.sparkfp4.sink;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.zip.GZIPInputStream;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.plan.OutputShard;

/** Makes the writer of a task's shard; travels to the executors. */
final class ShardWriterFactory implements DataWriterFactory {
  private static final long serialVersionUID = 1;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Broadcast<byte[][]> shards;
  private final Broadcast<SerializableConfiguration> conf;
  private final WriteTarget target;

  ShardWriterFactory(
      Broadcast<byte[][]> shards, Broadcast<SerializableConfiguration> conf, WriteTarget target) {
    this.shards = shards;
    this.conf = conf;
    this.target = target;
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partition, long task) {
    try (InputStream in = new GZIPInputStream(new ByteArrayInputStream(shards.value()[partition]))) {
      OutputShard shard = JSON.readValue(in, OutputShard.class);
      return new ShardWriter(shard, target, conf.value().value(), task);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot begin a shard in " + target.output().folder(), e);
    }
  }
}
