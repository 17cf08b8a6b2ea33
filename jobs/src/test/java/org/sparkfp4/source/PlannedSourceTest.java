package org.sparkfp4.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.plan.AmaxFile;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.safetensors.TensorInfo;

class PlannedSourceTest {
  private static final Path GOLDEN = Path.of("src/test/resources/golden/qwen3_moe_bf16");
  private static final SparkSession SPARK = TestSpark.session();
  private static final Configuration HADOOP = new Configuration();
  private static final String EXPERT = "model.layers.0.mlp.experts.%d.%s_proj.weight";

  @TempDir
  Path temporary;

  private Checkpoint checkpoint;
  private String plan;
  private String amax;

  /** Shard 0: a whole unit and a cut one; shard 1: no unit; shard 2: a whole one. */
  @BeforeEach
  void writePlan() throws IOException {
    checkpoint = Checkpoint.open(HADOOP, GOLDEN.toString());
    plan = temporary.resolve("plan.json").toString();
    amax = temporary.resolve("amax.json").toString();
    write(checkpoint.sourceFiles());
    AmaxFile.write(HADOOP, new org.apache.hadoop.fs.Path(amax), Map.of(1, 0.1f));
  }

  private void write(List<SourceFile> sources) throws IOException {
    Unit whole = unit(0, "down", tensor(0, "down"));
    Unit cut = unit(1, "gate_up", tensor(1, "gate"), tensor(1, "up"));
    Unit last = unit(2, "down2", tensor(2, "down"));
    LocatedTensor norm = checkpoint.tensor("model.norm.weight").orElseThrow();
    List<OutputShard> shards = List.of(
        new OutputShard(0, "a", 0, List.of(quantized(whole), copied(norm), quantized(cut))),
        new OutputShard(1, "b", 0, List.of(copied(norm))),
        new OutputShard(2, "c", 0, List.of(quantized(last))));
    PlanOptions options = new PlanOptions("modelopt", "rtn", "experts", false, 0);
    PlanFile.write(HADOOP, new org.apache.hadoop.fs.Path(plan), new QuantizationPlan(
        "f", checkpoint.path().toString(), options, "qwen3_moe", 20_000, sources, shards, List.of(), List.of()));
  }

  @ParameterizedTest
  @ValueSource(strings = {"mmap", "pread"})
  void aPartitionIsAShardAndARowASlab(String mode) throws IOException {
    Dataset<Row> planned = read().option("amax", amax).option("read", mode).load();
    assertThat(planned.columns())
        .containsExactly("unit", "slab", "name", "scheme", "cols", "amax", "data0", "data1", "data2", "scale0", "scale1",
            "scale2", "importance", "checksums");
    assertThat(planned.rdd().getNumPartitions()).isEqualTo(3);
    List<Row> rows = planned.selectExpr("spark_partition_id() as p", "*").collectAsList();

    // slabs of 64 rows of 256 bytes: each member of the cut unit is one
    assertThat(rows).extracting(row -> row.get(0) + " " + row.get(1) + " " + row.get(2) + " " + row.get(3)
        + " " + row.get(4) + " " + row.get(5) + " " + row.get(6)).containsExactly(
            "0 0 0 down BF16 64 null", "0 1 0 gate_up BF16 128 0.1", "0 1 1 gate_up BF16 128 0.1",
            "2 2 0 down2 BF16 64 null");
    assertThat(rows.get(0).<byte[]>getAs("data0")).isEqualTo(bytes(tensor(0, "down")));
    assertThat(rows.get(1).<byte[]>getAs("data0")).isEqualTo(bytes(tensor(1, "gate")));
    assertThat(rows.get(2).<byte[]>getAs("data0")).isEqualTo(bytes(tensor(1, "up")));
    assertThat(rows).allMatch(row -> row.getAs("data1") == null && row.getAs("data2") == null);
    for (Row row : rows) {
      CRC32C crc = new CRC32C();
      crc.update(row.<byte[]>getAs("data0"));
      ByteBuffer sums = ByteBuffer.wrap(row.<byte[]>getAs("checksums")).order(ByteOrder.LITTLE_ENDIAN);
      assertThat(sums.getInt(0)).isEqualTo((int) crc.getValue());
      assertThat(sums.getLong(4) | sums.getLong(12) | sums.getInt(20)).isZero();
    }
  }

  @Test
  void checksumsWithoutWhatTheyAreOf() {
    Dataset<Row> some = read().option("amax", amax).load().select("unit", "data0", "checksums");

    assertThatThrownBy(some::collectAsList).hasStackTraceContaining(
        "Cannot read the column checksums without [data0, data1, data2, scale0, scale1, scale2], which it is of");
  }

  @Test
  void membersOfSeveralFilesInOneRow() throws IOException {
    LocatedTensor gate = tensor(1, "gate");
    LocatedTensor up = tensor(1, "up");
    assertThat(gate.file()).isNotEqualTo(up.file());
    OutputShard shard = new OutputShard(0, "a", 0, List.of(quantized(unit(0, "gate_up", gate, up))));
    PlanFile.write(HADOOP, new org.apache.hadoop.fs.Path(plan), new QuantizationPlan(
        "f", checkpoint.path().toString(), new PlanOptions("modelopt", "rtn", "experts", false, 0), "qwen3_moe",
        256 << 20, checkpoint.sourceFiles(), List.of(shard), List.of(), List.of()));
    Row row = read().load().first();
    assertThat(row.<byte[]>getAs("data0")).isEqualTo(bytes(gate));
    assertThat(row.<byte[]>getAs("data1")).isEqualTo(bytes(up));
    assertThat(row.isNullAt(row.fieldIndex("data2"))).isTrue();
  }

  @Test
  void someShardsInTheOrderAskedFor() {
    Dataset<Row> planned = read().option("shards", "2, 1").load();
    assertThat(planned.rdd().getNumPartitions()).isEqualTo(2);
    assertThat(planned.selectExpr("spark_partition_id()", "unit").collectAsList())
        .extracting(row -> row.get(0) + " " + row.get(1)).containsExactly("0 2");
  }

  @Test
  void cutUnitsOnly() {
    Dataset<Row> cut = read().option("slabs", "cut").load();
    assertThat(cut.rdd().getNumPartitions()).isEqualTo(3);
    assertThat(cut.select("unit", "slab", "amax").collectAsList())
        .extracting(Row::toString).containsExactly("[1,0,null]", "[1,1,null]");
  }

  @Test
  void namesLeavePartitionsInPlace() {
    Dataset<Row> down = read().load().where("name = 'down2'").selectExpr("spark_partition_id()", "unit");
    assertThat(down.rdd().getNumPartitions()).isEqualTo(3);
    assertThat(down.collectAsList()).extracting(Row::toString).containsExactly("[2,2]");
  }

  @Test
  void badRequests() throws IOException {
    assertRefused(read().option("shards", "3"), "Invalid option shards: 3; the plan has 3 shards");
    assertRefused(read().option("shards", "-1"), "Invalid option shards: \"-1\"; give numbers");
    assertRefused(read().option("shards", "1,x"), "Invalid option shards: \"1,x\"; give numbers such as 0,1,5");
    assertRefused(read().option("shards", "1,1"), "Invalid option shards: \"1,1\" has 1 twice");
    assertRefused(read().option("slabs", "some"), "Invalid option slabs: \"some\"; give all or cut");
    AmaxFile.write(HADOOP, new org.apache.hadoop.fs.Path(amax), Map.of(0, 1f));
    assertRefused(read().option("amax", amax), "amax.json: it lacks unit 1 (gate_up), which is cut");
    Files.writeString(Path.of(plan), "{");
    assertRefused(read(), "Invalid plan " + plan);
  }

  @Test
  void sourcesThatAreNotThoseOfThePlan() throws IOException {
    write(checkpoint.sourceFiles().stream()
        .map(source -> new SourceFile(source.name(), source.length(), source.modified() + 1)).toList());
    assertRefused(read(), "model-00001-of-00003.safetensors: it was modified at ");
    write(checkpoint.sourceFiles().stream()
        .map(source -> new SourceFile(source.name(), source.length() + 1, source.modified())).toList());
    assertRefused(read(), "model-00001-of-00003.safetensors: it has ");
    write(checkpoint.sourceFiles().subList(0, 1));
    assertRefused(read(), "which its sources lack");
  }

  private DataFrameReader read() {
    return SPARK.read().format("safetensors").option("plan", plan);
  }

  private static void assertRefused(DataFrameReader reader, String message) {
    assertThatThrownBy(() -> reader.load().collectAsList()).hasStackTraceContaining(message);
  }

  private LocatedTensor tensor(int expert, String projection) {
    return checkpoint.tensor(EXPERT.formatted(expert, projection)).orElseThrow();
  }

  private static byte[] bytes(LocatedTensor tensor) throws IOException {
    byte[] file = Files.readAllBytes(GOLDEN.resolve(tensor.file()));
    return Arrays.copyOfRange(file, (int) tensor.offset(), (int) (tensor.offset() + tensor.length()));
  }

  private static Unit unit(int id, String name, LocatedTensor... weights) {
    return new Unit(id, name, "BF16", weights[0].cols(),
        Arrays.stream(weights).map(weight -> new Member(weight.name(), weight, null)).toList());
  }

  private static ShardItem quantized(Unit unit) {
    return new ShardItem.Quantized(unit, List.of());
  }

  private static ShardItem copied(LocatedTensor tensor) {
    return new ShardItem.Copied(tensor, new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), 0, 256));
  }
}
