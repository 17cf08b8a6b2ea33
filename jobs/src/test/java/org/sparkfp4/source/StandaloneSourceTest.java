package org.sparkfp4.source;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.files.SourceChangedException;
import org.sparkfp4.safetensors.DType;

class StandaloneSourceTest {
  private static final String GOLDEN = "src/test/resources/golden/qwen3_moe_bf16";
  private static final SparkSession SPARK = TestSpark.session();

  @TempDir
  Path temporary;

  @ParameterizedTest
  @CsvSource({"mmap,16m", "pread,16m", "mmap,1000", "pread,1000", "mmap,1"})
  void everyByteOfEveryTensor(String mode, String slabBytes) throws IOException {
    List<Row> rows = SPARK.read().format("safetensors").option("read", mode).option("slabBytes", slabBytes)
        .load(GOLDEN).collectAsList();

    Set<String> seen = new HashSet<>();
    int next = 0;
    for (LocatedTensor tensor : Checkpoint.open(new Configuration(), GOLDEN).tensors()) {
      byte[] file = Files.readAllBytes(Path.of(GOLDEN, tensor.file()));
      long rowOffset = 0;
      while (rowOffset < tensor.rows()) {
        Row row = rows.get(next++);
        assertThat(row.<String>getAs("name")).isEqualTo(tensor.name());
        assertThat(row.<String>getAs("dtype")).isEqualTo("BF16");
        assertThat(row.<String>getAs("shape")).isEqualTo(tensor.shape().toString().replace(" ", ""));
        assertThat(row.<String>getAs("file")).isEqualTo(tensor.file());
        assertThat(row.<Long>getAs("cols")).isEqualTo(tensor.cols());
        assertThat(row.<Long>getAs("row_offset")).isEqualTo(rowOffset);
        long count = row.<Long>getAs("rows");
        int begin = (int) (tensor.offset() + rowOffset * tensor.cols() * 2);
        assertThat(row.<byte[]>getAs("payload"))
            .isEqualTo(Arrays.copyOfRange(file, begin, begin + (int) (count * tensor.cols() * 2)));
        rowOffset += count;
      }

      seen.add(tensor.name());
    }

    assertThat(rows).hasSize(next);
    assertThat(seen).hasSizeGreaterThan(30);
  }

  @Test
  void oddShapes() throws IOException {
    Path file = temporary.resolve("odd.safetensors");
    byte[] data = new SafetensorsFixture()
        .add("none", DType.F32, 0L, 5L)
        .add("scalar", DType.F32)
        .add("vector", DType.U8, 7L)
        .add("nibbles", DType.F4, 5L, 2L, 3L)
        .add("cube", DType.U8, 2L, 3L, 2L)
        .write(file, 1);
    List<Row> rows = SPARK.read().format("safetensors").option("slabBytes", 1).load(file.toString())
        .where("name <> 'cube'").select("name", "shape", "row_offset", "rows", "cols", "payload").collectAsList();

    assertThat(rows).extracting(row -> row.getString(0) + row.getString(1) + row.get(2) + "+" + row.get(3)
        + "x" + row.get(4)).containsExactly(
            "none[0,5]0+0x5", "scalar[]0+1x1", "vector[7]0+1x7",
            "nibbles[5,2,3]0+2x3", "nibbles[5,2,3]2+2x3", "nibbles[5,2,3]4+2x3", "nibbles[5,2,3]6+2x3",
            "nibbles[5,2,3]8+2x3");
    assertThat(rows.get(0).<byte[]>getAs(5)).isEmpty();
    assertThat(rows.get(2).<byte[]>getAs(5)).isEqualTo(Arrays.copyOfRange(data, 4, 11));
    assertThat(rows.get(4).<byte[]>getAs(5)).isEqualTo(Arrays.copyOfRange(data, 14, 17));
  }

  // condition, and the pattern of the names that meet it
  @ParameterizedTest
  @CsvSource(delimiter = '|', quoteCharacter = '`', value = {
    "name = 'lm_head.weight' | lm_head.weight | 1",
    "name in ('lm_head.weight', 'model.norm.weight', 'no.such') | lm_head.weight;model.norm.weight | 2",
    "name like 'model.layers.1.%' | model.layers.1\\..* | 19",
    "name like 'model.layers.1.%' and name = 'model.layers.1.mlp.gate.weight' | model.layers.1.mlp.gate.weight | 1",
    "name = 'no.such' | no.such | 0",
  })
  void namesAreFilteredFromHeaders(String condition, String pattern, int count) throws IOException {
    Dataset<Row> filtered = SPARK.read().format("safetensors").load(GOLDEN).where(condition).select("name", "file");
    List<String> expected = Checkpoint.open(new Configuration(), GOLDEN).tensors().stream()
        .map(LocatedTensor::name).filter(name -> Arrays.stream(pattern.split(";")).anyMatch(name::matches)).toList();

    assertThat(expected).hasSize(count);
    assertThat(filtered.collectAsList()).extracting(row -> row.getString(0)).containsExactlyElementsOf(expected);
    assertThat(filtered.queryExecution().executedPlan().toString())
        .contains("BatchScan safetensors").doesNotContain("Filter ");
  }

  @Test
  void otherFiltersStayWithSpark() {
    Dataset<Row> all = SPARK.read().format("safetensors").load(GOLDEN);
    assertThat(all.where("name like '%.gate.weight' and rows = 4").count()).isEqualTo(2);
    assertThat(all.where("name = 'lm_head.weight' or cols = 64").count()).isGreaterThan(2);
    assertThat(all.where("name > 'model.norm'").count()).isEqualTo(1);
  }

  @Test
  void payloadIsAColumnLikeAnyOther() {
    Dataset<Row> all = SPARK.read().format("safetensors").load(GOLDEN);
    long tensors = all.count();
    assertThat(all.select(expr("sum(length(payload))")).first().getLong(0)).isEqualTo(625_920);
    assertThat(all.where(col("payload").isNotNull()).count()).isEqualTo(tensors);
    Row twice = all.selectExpr("payload", "name", "payload as again").first();
    assertThat(twice.<byte[]>getAs(0)).hasSize(16_384).isEqualTo(twice.<byte[]>getAs(2));
  }

  @Test
  void tensorOverTwoGibibytesBehindFour() throws IOException {
    Path file = temporary.resolve("large.safetensors");
    byte[] last = {1, 2, 3, 4};
    new SafetensorsFixture()
        .add("first", DType.BF16, 70_000L, 32_768L)
        .add("large", DType.BF16, 36_000L, 32_768L)
        .writeSparse(file, last);
    Dataset<Row> large = SPARK.read().format("safetensors").load(file.toString()).where("name = 'large'");
    assertThat(large.rdd().getNumPartitions()).isEqualTo(9);
    Row end = large.where("row_offset + rows = 36000").selectExpr("hex(substring(payload, -5))", "rows").first();
    assertThat(end.getString(0)).isEqualTo("0001020304");
  }

  @Test
  void aRowOverTwoGibibytesIsRefusedUnlessItsBytesAreNotWanted() throws IOException {
    Path file = temporary.resolve("wide.safetensors");
    new SafetensorsFixture().add("wide", DType.F32, 600_000_000L).writeSparse(file, new byte[] {1});
    Dataset<Row> wide = SPARK.read().format("safetensors").load(file.toString());
    assertThat(wide.select("cols").first().getLong(0)).isEqualTo(600_000_000L);
    assertThatThrownBy(() -> wide.select("payload").collect())
        .hasRootCauseInstanceOf(IOException.class)
        .rootCause()
        .hasMessage("Cannot read tensor wide of wide.safetensors: a row of it has 2400000000 bytes, and a payload holds"
            + " at most 2147483639");
  }

  @Test
  void fileThatChangesBehindThePlan() throws IOException {
    Path file = temporary.resolve("changed.safetensors");
    new SafetensorsFixture().add("a", DType.U8, 4L).write(file, 1);
    Dataset<Row> touched = SPARK.read().format("safetensors").load(file.toString());
    assertThat(touched.queryExecution().executedPlan().execute().getNumPartitions()).isEqualTo(1);
    Files.setLastModifiedTime(file, FileTime.fromMillis(1_000_000_000_000L));
    assertThatThrownBy(() -> touched.queryExecution().executedPlan().executeCollect())
        .rootCause()
        .isInstanceOf(SourceChangedException.class)
        .hasMessageContaining("changed.safetensors: it was modified at 1000000000000, after it was planned");
  }

  @Test
  void symbolicLink() throws IOException {
    Path file = temporary.resolve("blob");
    byte[] data = new SafetensorsFixture().add("a", DType.U8, 4L).write(file, 1);
    Path link = Files.createSymbolicLink(temporary.resolve("model.safetensors"), Path.of("blob"));
    assertThat(SPARK.read().format("safetensors").load(link.toString()).select("payload").first().<byte[]>getAs(0))
        .isEqualTo(data);
  }

  @Test
  void badRequests() {
    assertThatThrownBy(() -> SPARK.read().format("safetensors").load().count())
        .hasMessageContaining("Cannot read safetensors: no path");
    assertThatThrownBy(() -> SPARK.read().format("safetensors").option("read", "fast").load(GOLDEN).count())
        .hasMessageContaining("Invalid option read: \"fast\"; give mmap or pread");
    assertThatThrownBy(() -> SPARK.read().format("safetensors").option("slabBytes", "3g").load(GOLDEN).count())
        .hasMessageContaining("Invalid option slabBytes: 3g; give 1 to 2147483639 bytes");
    assertThatThrownBy(() -> SPARK.read().format("safetensors").load(temporary.toString()).count())
        .hasMessageContaining("it has no .safetensors file");
    assertThatThrownBy(() -> SPARK.read().format("safetensors").load(GOLDEN).select("no_such"))
        .isInstanceOf(AnalysisException.class);
  }

  @Test
  void sessionConfigurationGivesDefaults() {
    SPARK.conf().set("spark.fp4.slabBytes", "4k");
    SPARK.conf().set("spark.fp4.read", "pread");
    try {
      Dataset<Row> head = SPARK.read().format("safetensors").load(GOLDEN).where("name = 'lm_head.weight'");
      assertThat(head.count()).isEqualTo(4);
      assertThat(head.queryExecution().executedPlan().toString()).contains("BatchScan");
      assertThat(SPARK.read().format("safetensors").option("slabBytes", "8k").load(GOLDEN)
          .where("name = 'lm_head.weight'").count()).isEqualTo(2);
    } finally {
      SPARK.conf().unset("spark.fp4.slabBytes");
      SPARK.conf().unset("spark.fp4.read");
    }
  }
}
