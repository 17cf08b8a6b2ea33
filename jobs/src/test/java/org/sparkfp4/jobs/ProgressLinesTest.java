package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** What commands draw on a terminal of how far they are. */
class ProgressLinesTest {
  private static final int DIM = 64;

  @TempDir
  private Path folder;

  /** Of one shard nothing is finished until all is; what its task has done is told nevertheless. */
  @Test
  void aShardIsSeenToGoOn() throws IOException {
    Path source = folder.resolve("source");
    new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, new ModelShape(2, 32, 256, 128, 96), DType.BF16, 5, 1 << 30)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));

    String drawn = drawn(new InProcess().conf("spark.fp4.cpu.tier", "java"), "quantize", "--input", source.toString(),
        "--output", folder.resolve("output").toString(), "--scale-search", "sweep");

    assertThat(drawn).startsWith("0 of 1 shard, 0 %\033[K\r")
        .containsPattern("0 of 1 shard, [1-9]\\d? %, [\\d.]+ MB/s of source, (\\d+m)?\\d+s left")
        .contains("1 of 1 shard, 100 %, ");
  }

  @Test
  void calibrationCountsItsTasks() throws IOException {
    Path activations = new KeyFiles().gaussian("model.layers.0.self_attn.o_proj.input", DType.BF16, 0, 40, DIM)
        .write(folder.resolve("activations/batch.safetensors"));

    String drawn = drawn(new InProcess(), "calibrate", "--input", activations.toString(), "--output",
        folder.resolve("statistics").toString());

    assertThat(drawn).containsPattern("^0 of (\\d+) tasks, 0 %").containsPattern("(\\d+) of \\1 tasks, 100 %");
  }

  @Test
  void layersOfATableAreCounted() {
    StructType schema = new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.LongType)
        .add("key", DataTypes.createArrayType(DataTypes.FloatType));
    List<Row> rows = new ArrayList<>();
    for (long slot = 0; slot < 4; slot++) {
      Float[] key = new Float[DIM];
      Arrays.fill(key, 1f + slot);
      rows.add(RowFactory.create("a", slot, key));
      rows.add(RowFactory.create("b", slot, key));
    }

    String table = "parquet:" + folder.resolve("table");
    String cache = folder.resolve("cache").toString();
    TestSpark.session().createDataFrame(rows, schema).write().parquet(folder.resolve("table").toString());
    drawn(new InProcess(), "quantize-keys", "--table", table, "--output", cache);

    assertThat(drawn(new InProcess(), "verify-keys", "--table", table, "--cache", cache, "--queries", "2"))
        .startsWith("0 of 2 layers, 0 %").contains("1 of 2 layers, 50 %", "2 of 2 layers, 100 %");
  }

  private static String drawn(InProcess runner, String... command) {
    PrintStream before = System.err;
    ByteArrayOutputStream drawn = new ByteArrayOutputStream();
    System.setErr(new PrintStream(drawn, true, StandardCharsets.UTF_8));
    try {
      SparkSubmitResult result = runner.conf("spark.fp4.progress", "line").run(command);
      assertThat(result.status()).as(result.out() + result.err()).isZero();
    } finally {
      System.setErr(before);
    }

    return drawn.toString(StandardCharsets.UTF_8);
  }
}
