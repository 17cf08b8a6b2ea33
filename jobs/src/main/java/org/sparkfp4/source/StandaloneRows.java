package org.sparkfp4.source;

import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;

/** Rows of a folder or a file: every tensor in slabs of whole rows, in the order of their bytes. */
final class StandaloneRows implements RowPlanner {
  // so that a shard of several gigabytes is read by several tasks
  private static final long PARTITION_BYTES = 256L << 20;
  // a partition of many small tensors, none of which has bytes, must end too
  private static final int PARTITION_ROWS = 20_000;

  private final String path;
  private final boolean everyFile;
  private final long slabBytes;

  StandaloneRows(String path, boolean everyFile, long slabBytes) {
    this.path = path;
    this.everyFile = everyFile;
    this.slabBytes = slabBytes;
  }

  @Override
  public List<SlabPartition> partitions(Configuration configuration, Predicate<String> names, boolean payload)
      throws IOException {
    List<Checkpoint> checkpoints =
        everyFile ? Checkpoint.openFiles(configuration, path) : List.of(Checkpoint.open(configuration, path));
    List<SlabPartition> partitions = new ArrayList<>();
    for (Checkpoint checkpoint : checkpoints) {
      addPartitions(partitions, checkpoint, names, payload);
    }

    return partitions;
  }

  private void addPartitions(
      List<SlabPartition> partitions, Checkpoint checkpoint, Predicate<String> names, boolean payload)
      throws IOException {
    var byFile = checkpoint.tensors().stream()
        .filter(tensor -> names.test(tensor.name()))
        .collect(Collectors.groupingBy(LocatedTensor::file));
    for (FileStatus shard : checkpoint.shards()) {
      SlabFile file = new SlabFile(shard.getPath().toString(), shard.getLen(), shard.getModificationTime());
      List<SourceRow> rows = new ArrayList<>();
      long bytes = 0;
      for (LocatedTensor tensor : byFile.getOrDefault(shard.getPath().getName(), List.of())) {
        for (SourceRow row : slabs(tensor, payload)) {
          long length = payloadOf(row).length();
          if (!rows.isEmpty() && (bytes + length > PARTITION_BYTES || rows.size() >= PARTITION_ROWS)) {
            partitions.add(new SlabPartition(List.of(file), rows));
            rows.clear();
            bytes = 0;
          }

          rows.add(row);
          bytes += length;
        }
      }

      if (!rows.isEmpty()) {
        partitions.add(new SlabPartition(List.of(file), rows));
      }
    }
  }

  private List<SourceRow> slabs(LocatedTensor tensor, boolean payload) throws IOException {
    long rows = tensor.rows();
    if (rows == 0 || tensor.length() == 0) {
      return List.of(row(tensor, 0, rows, 0, 0));
    }

    long rowBits = Math.multiplyExact(tensor.cols(), tensor.dtype().bits());
    long rowsPerSlab = rowsPerSlab(rowBits);
    List<SourceRow> slabs = new ArrayList<>();
    for (long first = 0; first < rows; first += rowsPerSlab) {
      long count = Math.min(rowsPerSlab, rows - first);
      long begin = bytes(first, rowBits);
      long length = bytes(first + count, rowBits) - begin;
      if (payload && length > ByteRange.MAX_LENGTH) {
        throw new IOException(
            "Cannot read tensor " + tensor.name() + " of " + tensor.file() + ": a row of it has " + length
                + " bytes, and a payload holds at most " + ByteRange.MAX_LENGTH);
      }

      slabs.add(row(tensor, first, count, begin, length));
    }

    return slabs;
  }

  /** As many rows as fit, at least as many as make whole bytes of elements that are smaller than one. */
  private long rowsPerSlab(long rowBits) {
    long step = Byte.SIZE / BigInteger.valueOf(rowBits).gcd(BigInteger.valueOf(Byte.SIZE)).longValueExact();
    long fitting = Math.max(1, slabBytes * Byte.SIZE / rowBits);
    return Math.max(step, fitting / step * step);
  }

  private static long bytes(long rows, long rowBits) {
    // rows times rowBits may pass 63 bits where the bytes do not
    return Math.addExact(
        Math.multiplyExact(rows, rowBits / Byte.SIZE), Math.multiplyExact(rows, rowBits % Byte.SIZE) / Byte.SIZE);
  }

  private static SourceRow row(LocatedTensor tensor, long firstRow, long rows, long begin, long length) {
    return SourceRow.of(
        tensor.name(),
        tensor.dtype().name(),
        tensor.shape().stream().map(String::valueOf).collect(Collectors.joining(",", "[", "]")),
        firstRow,
        rows,
        tensor.cols(),
        new ByteRange(0, tensor.offset() + begin, length),
        tensor.file());
  }

  private static ByteRange payloadOf(SourceRow row) {
    return (ByteRange) row.values().get(SourceSchema.STAND_ALONE.fieldIndex("payload"));
  }
}
