package org.sparkfp4.source;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.RootAllocator;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.safetensors.DType;

/** Places and lengths that 32 bits do not hold, in a sparse file. */
class FarTensorTest {
  private static final long OFFSET = 5L << 30;
  private static final long ROWS = 300_000;
  private static final long COLS = 4096;
  private static final long LENGTH = ROWS * COLS * 2;

  @TempDir
  private Path folder;

  @ParameterizedTest
  @EnumSource(ReadMode.class)
  void readsTheLastRowOfATensorOverTwoGibibytesBehindFour(ReadMode mode) throws Exception {
    Path file = folder.resolve("model.safetensors");
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.setLength(OFFSET + LENGTH);
      out.seek(OFFSET + LENGTH - 4);
      out.write(new byte[] {1, 2, 3, 4});
    }

    SlabPartition partition = plan(file).partitions(new Configuration(), name -> true, true).get(0);
    ByteRange last = (ByteRange) partition.rows().get(partition.rows().size() - 1).values().get(6);
    try (RootAllocator allocator = new RootAllocator();
        SourceInputs inputs = new SourceInputs(partition.files(), mode, new Configuration(), new SourceMetrics());
        ArrowBuf bytes = inputs.read(allocator, last)) {
      assertThat(last.offset() + last.length()).isEqualTo(OFFSET + LENGTH);
      assertThat(bytes.getInt(last.length() - 4)).isEqualTo(0x04030201);
      assertThat(bytes.getInt(0)).isZero();
    }

    long read = partition.rows().stream().mapToLong(row -> ((ByteRange) row.values().get(6)).length()).sum();
    assertThat(read).isEqualTo(LENGTH);
  }

  private PlannedRows plan(Path file) throws Exception {
    LocatedTensor weight = new LocatedTensor(
        "a.weight", DType.BF16, List.of(ROWS, COLS), file.getFileName().toString(), OFFSET, LENGTH);
    Unit unit = new Unit(0, "a", "BF16", COLS, List.of(new Member("a", weight, null)));
    QuantizationPlan plan = new QuantizationPlan(
        "f", folder.toUri().toString(), new PlanOptions("modelopt", "rtn", "experts", false, 0), "llama", 64L << 20,
        List.of(new SourceFile(
            file.getFileName().toString(), file.toFile().length(), file.toFile().lastModified())),
        List.of(new OutputShard(0, "o", 0, List.of(new ShardItem.Quantized(unit, List.of())))), List.of(), List.of());
    org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(folder.resolve("plan.json").toUri());
    PlanFile.write(new Configuration(), path, plan);
    return new PlannedRows(path.toString(), null, false, null);
  }
}
