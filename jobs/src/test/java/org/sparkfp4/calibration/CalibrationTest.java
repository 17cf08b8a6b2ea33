package org.sparkfp4.calibration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.progress.ProgressView;

class CalibrationTest extends CalibrationRuns {
  private static final int TOKENS = 301;

  @ParameterizedTest
  @EnumSource(HessianKind.class)
  void sumsAreThoseOfTheDefinition(HessianKind hessian) throws IOException {
    Activations x = Activations.random(TOKENS, COLS, 1);
    write("a.safetensors", Map.of(MODULE + ".input", x.rows(0, 100).bf16()));
    write("b.safetensors", Map.of(MODULE + ".input", x.rows(100, TOKENS).f32()));

    StatisticsFiles statistics = calibrate(hessian);

    assertThat(statistics.longs(MODULE, "tokens")).containsExactly(TOKENS);
    float amax = 0;
    double[] squares = new double[COLS];
    long[] histogram = new long[BlockAmaxHistogram.BINS];
    for (float[] token : x.values()) {
      for (int i = 0; i < COLS; i++) {
        amax = Math.max(amax, Math.abs(token[i]));
        squares[i] += (double) token[i] * token[i];
      }

      for (int block = 0; block < COLS; block += 16) {
        float largest = 0;
        for (int i = block; i < block + 16; i++) {
          largest = Math.max(largest, Math.abs(token[i]));
        }

        histogram[BlockAmaxHistogram.bin(largest)]++;
      }
    }

    assertThat(statistics.floats(MODULE, "amax")).containsExactly(amax);
    assertThat(statistics.longs(MODULE, "block_amax_histogram")).isEqualTo(histogram);
    assertThat(statistics.doubles(MODULE, "sum_squares")).containsExactly(squares, within(1e-9));
    float[] mean = statistics.floats(MODULE, "mean_square");
    for (int i = 0; i < COLS; i++) {
      assertThat(mean[i]).isEqualTo((float) (statistics.doubles(MODULE, "sum_squares")[i] / TOKENS));
    }

    assertThat(statistics.has(MODULE, "local_hessian")).isEqualTo(hessian != HessianKind.NONE);
    assertThat(statistics.has(MODULE, "hessian")).isEqualTo(hessian == HessianKind.FULL);
    if (hessian != HessianKind.NONE) {
      requireLocal(statistics, x);
    }

    if (hessian == HessianKind.FULL) {
      requireFull(statistics, x);
    }
  }

  private static void requireLocal(StatisticsFiles statistics, Activations x) {
    float[] local = statistics.floats(MODULE, "local_hessian");
    assertThat(statistics.tensor(MODULE, "local_hessian").shape()).containsExactly((long) COLS / 16, 16L, 16L);
    for (int index = 0; index < local.length; index++) {
      int block = index / 256 * 16;
      int i = block + index / 16 % 16;
      int j = block + index % 16;
      double sum = 0;
      for (float[] token : x.values()) {
        sum += (double) token[i] * token[j];
      }

      assertThat((double) local[index]).isCloseTo(sum / TOKENS, within(1e-6));
    }
  }

  private static void requireFull(StatisticsFiles statistics, Activations x) {
    // tokens are numbered within their files
    double[][] sums = new double[2][COLS * COLS];
    long[] tokens = new long[2];
    for (int token = 0; token < TOKENS; token++) {
      int number = token < 100 ? token : token - 100;
      int which = number % 8 == 7 ? 1 : 0;
      tokens[which]++;
      for (int i = 0; i < COLS; i++) {
        for (int j = 0; j < COLS; j++) {
          sums[which][i * COLS + j] += (double) x.values()[token][i] * x.values()[token][j];
        }
      }
    }

    assertThat(statistics.longs(MODULE, "held_out_tokens")).containsExactly(tokens[1]);
    float[] hessian = statistics.floats(MODULE, "hessian");
    float[] heldOut = statistics.floats(MODULE, "hessian_held_out");
    for (int i = 0; i < COLS * COLS; i++) {
      assertThat((double) hessian[i]).isCloseTo(sums[0][i] / tokens[0], within(1e-6));
      assertThat((double) heldOut[i]).isCloseTo(sums[1][i] / tokens[1], within(1e-6));
    }
  }

  @Test
  void anyPartitioningGivesTheSameSums() throws IOException {
    Activations x = Activations.random(TOKENS, COLS, 2);
    write("a.safetensors", Map.of(MODULE + ".input", x.bf16(), "lm_head.input", x.rows(0, 5).f32()));
    StatisticsFiles whole = calibrate(HessianKind.FULL);

    spark.conf().set("spark.fp4.slabBytes", "1000");
    try {
      ActivationFiles source = new ActivationFiles(spark, input.toString());
      CalibrationPlan plan = new CalibrationPlanner(HessianKind.FULL, null, 40_000, 1).plan(source);
      assertThat(plan.shards()).isEqualTo(2);
      assertThat(plan.bands().count(plan.inputs().get(MODULE))).isGreaterThan(2);
      Path other = folder.resolve("other");
      new Calibration(spark, shuffled(source), null, plan, "auto", "java", "test").run(
          FileSystem.getLocal(new Configuration()).getRaw(), new org.apache.hadoop.fs.Path(other.toUri()), false,
          ProgressView.of("off"));
      requireSame(whole, new StatisticsFiles(other));
    } finally {
      spark.conf().unset("spark.fp4.slabBytes");
    }
  }

  /** Chunks of 32 tokens and of more, rows in strips, bands of which the last is narrow. */
  @Test
  void wideInputsHaveTheirProductsInBandsOfAnyWidth() throws IOException {
    int cols = 656;
    Activations x = Activations.random(TOKENS, cols, 3);
    write("a.safetensors", Map.of(MODULE + ".input", x.bf16()));
    ActivationFiles source = new ActivationFiles(spark, input.toString());
    Set<Integer> widths = new HashSet<>();
    for (long taskBytes : new long[] {128L << 20, 5L << 20, 1L << 20, 1}) {
      CalibrationPlan plan = new CalibrationPlanner(HessianKind.FULL, null, taskBytes, 1).plan(source);
      widths.add(plan.bands().width(plan.inputs().get(MODULE)));
      Path folder = this.folder.resolve("statistics-" + taskBytes);
      new Calibration(spark, source, null, plan, "auto", "auto", "test").run(
          FileSystem.getLocal(new Configuration()).getRaw(), new org.apache.hadoop.fs.Path(folder.toUri()), false,
          ProgressView.of("off"));
      requireProducts(new StatisticsFiles(folder), x, cols);
    }

    assertThat(widths).hasSize(4).contains(cols, 16);
  }

  private static void requireProducts(StatisticsFiles statistics, Activations x, int cols) throws IOException {
    double[] sums = new double[cols * cols];
    int tokens = 0;
    for (int token = 0; token < TOKENS; token++) {
      if (token % 8 != 7) {
        tokens++;
        for (int i = 0; i < cols; i++) {
          for (int j = 0; j < cols; j++) {
            sums[i * cols + j] += (double) x.values()[token][i] * x.values()[token][j];
          }
        }
      }
    }

    float[] hessian = statistics.floats(MODULE, "hessian");
    double worst = 0;
    for (int i = 0; i < cols * cols; i++) {
      worst = Math.max(worst, Math.abs(hessian[i] - sums[i] / tokens));
    }

    assertThat(worst).isLessThan(1e-6);
  }

  /** The same rows in other partitions and another order. */
  private static ActivationSource shuffled(ActivationFiles source) {
    return new ActivationSource() {
      @Override
      public List<FoundInput> inputs() {
        return source.inputs();
      }

      @Override
      public Map<String, RoutingTensor> routings() {
        return source.routings();
      }

      @Override
      public org.apache.spark.sql.Dataset<Row> rows() {
        return source.rows().repartition(7);
      }

      @Override
      public List<SourceFile> files() {
        return source.files();
      }
    };
  }

  private static void requireSame(StatisticsFiles one, StatisticsFiles other) {
    assertThat(other.index().modules().stream().map(ModuleStatistics::module))
        .containsExactlyInAnyOrderElementsOf(one.index().modules().stream().map(ModuleStatistics::module).toList());
    for (ModuleStatistics module : one.index().modules()) {
      String name = module.module();
      assertThat(other.longs(name, "tokens")).isEqualTo(one.longs(name, "tokens"));
      assertThat(other.longs(name, "block_amax_histogram")).isEqualTo(one.longs(name, "block_amax_histogram"));
      assertThat(other.floats(name, "amax")).isEqualTo(one.floats(name, "amax"));
      double[] squares = one.doubles(name, "sum_squares");
      double[] others = other.doubles(name, "sum_squares");
      for (int i = 0; i < squares.length; i++) {
        // the stated tolerance: a few units in the last place of a double
        assertThat(others[i]).isCloseTo(squares[i], within(1e-14 * squares[i]));
      }

      for (String hessian : List.of("local_hessian", "hessian", "hessian_held_out")) {
        float[] means = one.floats(name, hessian);
        float[] otherMeans = other.floats(name, hessian);
        for (int i = 0; i < means.length; i++) {
          assertThat(otherMeans[i]).isCloseTo(means[i], within(Math.ulp(means[i]) + 1e-13f));
        }
      }
    }
  }

  @Test
  void routedTokensAreSummedForTheirExperts() throws IOException {
    Checkpoint model = Checkpoint.open(new Configuration(), CheckpointFiles.golden("qwen3_moe_bf16").toString());
    ModelFamily family = ModelFamily.of(model.config());
    int experts = model.config().path("num_experts").asInt();
    int hidden = model.config().path("hidden_size").asInt();
    int intermediate = model.config().path("moe_intermediate_size").asInt();
    Activations x = Activations.random(50, hidden, 3);
    int[][] routing = new int[50][2];
    for (int token = 0; token < 50; token++) {
      // the last expert gets none
      routing[token][0] = token % (experts - 1);
      routing[token][1] = (token + 1) % (experts - 1);
    }

    Activations down = Activations.random(9, intermediate, 4);
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    tensors.put("model.layers.0.mlp.input", x.bf16());
    tensors.put("model.layers.0.mlp.experts.1.down_proj.input", down.bf16());
    tensors.put("model.layers.0.mlp.routing", Activations.routing(routing));
    write("a.safetensors", tensors);
    spark.conf().set("spark.fp4.slabBytes", "2048");
    StatisticsFiles statistics;
    try {
      statistics = calibrate(HessianKind.LOCAL, new ModelModules(model, family));
    } finally {
      spark.conf().unset("spark.fp4.slabBytes");
    }

    long all = 0;
    for (int expert = 0; expert < experts; expert++) {
      String gate = "model.layers.0.mlp.experts." + expert + ".gate_proj";
      int number = expert;
      List<float[]> seen = new ArrayList<>();
      for (int token = 0; token < 50; token++) {
        if (Arrays.stream(routing[token]).anyMatch(chosen -> chosen == number)) {
          seen.add(x.values()[token]);
        }
      }

      assertThat(statistics.longs(gate, "tokens")).containsExactly(seen.size());
      all += seen.size();
      double[] squares = new double[hidden];
      seen.forEach(token -> {
        for (int i = 0; i < hidden; i++) {
          squares[i] += (double) token[i] * token[i];
        }
      });
      assertThat(statistics.doubles(gate, "sum_squares")).containsExactly(squares, within(1e-9));
      assertThat(statistics.has(gate, "local_hessian")).isEqualTo(!seen.isEmpty());
    }

    assertThat(all).isEqualTo(100);
    assertThat(statistics.longs("model.layers.0.mlp.experts.1.down_proj", "tokens")).containsExactly(9);
    assertThat(statistics.longs("model.layers.0.mlp.experts.0.down_proj", "tokens")).containsExactly(0);
    ExpertTokens layer = statistics.index().experts().get(0);
    assertThat(layer.experts()).isEqualTo("model.layers.0.mlp.experts");
    assertThat(layer.dead()).containsExactly(experts - 1);
    assertThat(layer.tokens().stream().mapToLong(Long::longValue).sum()).isGreaterThanOrEqualTo(100);
    assertThat(new StatisticsSummary(statistics.index()).text())
        .contains("dead       model.layers.0.mlp.experts: " + (experts - 1) + "\n");
  }

  @Test
  void tablesGiveTheSameAsFiles() throws IOException {
    Activations x = Activations.random(40, 32, 5);
    write("a.safetensors", Map.of("down.input", x.f32(), "up.input", x.rows(0, 16).f32()));
    StatisticsFiles files = calibrate(HessianKind.FULL);
    List<Row> rows = new ArrayList<>();
    for (int token = 39; token >= 0; token--) {
      List<Float> values = new ArrayList<>();
      for (float value : x.values()[token]) {
        values.add(value);
      }

      rows.add(RowFactory.create("down", token, values));
      if (token < 16) {
        rows.add(RowFactory.create("up", token, values));
      }
    }

    StructType schema = new StructType()
        .add("module", DataTypes.StringType)
        .add("token", DataTypes.IntegerType)
        .add("values", DataTypes.createArrayType(DataTypes.FloatType));
    Path table = folder.resolve("a table, 100 %");
    spark.createDataFrame(rows, schema).write().parquet(table.toString());
    output = folder.resolve("of-table");
    run(new ActivationTable(spark, "parquet:" + table), HessianKind.FULL, null, false);

    requireSame(files, new StatisticsFiles(output));
    Path file = output.resolve("statistics-00001-of-00001.safetensors");
    long written = Files.getLastModifiedTime(file).toMillis();
    run(new ActivationTable(spark, "parquet:" + table), HessianKind.FULL, null, false);
    assertThat(Files.getLastModifiedTime(file).toMillis()).isEqualTo(written);
  }

  @Test
  void finishedStatisticsAreKeptAndOthersRefused() throws IOException {
    write("a.safetensors", Map.of(MODULE + ".input", Activations.random(20, COLS, 8).bf16()));
    calibrate(HessianKind.LOCAL);
    Path file = output.resolve("statistics-00001-of-00001.safetensors");
    long written = Files.getLastModifiedTime(file).toMillis();
    calibrate(HessianKind.LOCAL);
    assertThat(Files.getLastModifiedTime(file).toMillis()).isEqualTo(written);

    assertThatThrownBy(() -> calibrate(HessianKind.NONE))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("it holds statistics of other activations, another model or another --hessian (local)")
        .hasMessageContaining("--overwrite");
    run(new ActivationFiles(spark, input.toString()), HessianKind.NONE, null, true);
    assertThat(new StatisticsFiles(output).index().hessian()).isEqualTo("none");
  }
}
