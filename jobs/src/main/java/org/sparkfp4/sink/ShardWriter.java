package org.sparkfp4.sink;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.SourceChangedException;
import org.sparkfp4.formats.InvalidImportanceException;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.metrics.ProcessCounter;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.output.LayerError;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.output.StagedFile;
import org.sparkfp4.output.TaskFiles;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * Writes one shard front to back: its header, then its items in the plan's order, tensors that are carried over from
 * the source as they are or in BF16, quantized ones from the rows that arrive.
 */
final class ShardWriter implements DataWriter<InternalRow> {
  private static final String LAYOUT_KEY = "sparkfp4.layout";

  private final OutputShard shard;
  private final WriteTarget target;
  private final TaskFiles files;
  private final StagedFile out;
  private final SourceFiles source;
  private final SinkMetrics metrics = new SinkMetrics();
  private final List<LayerError> layers = new ArrayList<>();
  private final SourcePieces pieces = new SourcePieces();
  private String refusal;

  ShardWriter(OutputShard shard, WriteTarget target, Configuration conf, long task) throws IOException {
    this.shard = shard;
    this.target = target;
    this.source = new SourceFiles(target.input(), target.sources(), conf, pieces);
    this.files = new TaskFiles(target.output(), conf, task);
    this.out = files.begin(shard.index(), shard.file());
  }

  @Override
  public void writeAll(Iterator<InternalRow> rows) throws IOException {
    EncodedSlabReader reader = new EncodedSlabReader(target.gptq());
    SlabCursor slabs = new SlabCursor(shard, target.slabBytes(), rows, reader, pieces, metrics);
    try {
      writeHeader();
      UnitWriter units = new UnitWriter(out);
      SourceCopier copier = new SourceCopier(source);
      SourceDequantizer dequantizer = new SourceDequantizer(source, target.input(), target.kernels());
      for (ShardItem item : shard.items()) {
        if (item instanceof ShardItem.Copied copied) {
          copier.copy(copied.source(), out);
        } else if (item instanceof ShardItem.Carried carried) {
          for (LocatedTensor tensor : carried.sources()) {
            copier.copy(tensor, out);
          }
        } else if (item instanceof ShardItem.Dequantized dequantized) {
          dequantizer.write(dequantized, out);
        } else if (item instanceof ShardItem.Quantized quantized) {
          List<LayerError> members = units.write(quantized, slabs);
          metrics.addUnit(members);
          layers.addAll(members);
        }

        target.underWay().add(item.sourceBytes());
      }

      slabs.requireEnd();
      source.requireUnchanged();
    } catch (RuntimeException | IOException e) {
      refusal = refusal(e, slabs);
      if (refusal == null) {
        throw e;
      }
    }
  }

  /**
   * What is wrong with the source, however deep Spark wrapped it; null for a failure that another attempt may be spared.
   */
  private String refusal(Exception e, SlabCursor slabs) {
    for (Throwable cause = e; cause != null; cause = cause.getCause()) {
      if (cause instanceof NonFiniteException bad) {
        return slabs.describe(bad, target.input());
      }

      if (cause instanceof InvalidImportanceException bad) {
        return slabs.describe(bad);
      }

      if (cause instanceof SourceChangedException || cause instanceof BadSourceException) {
        return cause.getMessage();
      }
    }

    return null;
  }

  private void writeHeader() throws IOException {
    List<TensorInfo> tensors = shard.items().stream().flatMap(item -> item.outputs().stream()).toList();
    Map<String, String> metadata = new TreeMap<>(SafetensorsHeader.FORMAT_PT);
    if (target.layout() != null) {
      metadata.put(LAYOUT_KEY, target.layout());
    }

    out.write(ByteBuffer.wrap(SafetensorsHeader.encode(tensors, metadata)));
  }

  @Override
  public void write(InternalRow row) {
    throw new UnsupportedOperationException("Cannot write row by row: a shard is written by writeAll");
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    if (refusal != null) {
      abort();
      return new ShardMessage.Refused(shard.index(), refusal);
    }

    ShardRecord record = files.finish(out, shard.index(), target.fingerprint(), layers, pieces.joined(), null);
    ProcessCounter.SINK_SHARDS.add(1);
    ProcessCounter.SINK_BYTES.add(record.length());
    return new ShardMessage.Finished(record);
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return metrics.values(out.length());
  }

  @Override
  public void abort() throws IOException {
    out.close();
  }

  @Override
  public void close() {
    try {
      source.close();
      out.close();
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot close " + shard.file(), e);
    }
  }
}
