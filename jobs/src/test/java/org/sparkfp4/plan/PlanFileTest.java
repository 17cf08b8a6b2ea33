package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

class PlanFileTest {
  private static final Configuration HADOOP = new Configuration();

  @TempDir
  java.nio.file.Path temporary;

  @Test
  void planComesBackAsItWas() throws IOException {
    QuantizationPlan plan = plan("f1");
    Path path = path("plan.json");
    PlanFile.write(HADOOP, path, plan("old"));
    PlanFile.write(HADOOP, path, plan);
    assertThat(PlanFile.read(HADOOP, path)).isEqualTo(plan);
    try (var files = Files.list(temporary)) {
      assertThat(files).hasSize(1);
    }
  }

  @Test
  void damagedPlan() throws IOException {
    Path path = path("plan.json");
    assertThatThrownBy(() -> PlanFile.read(HADOOP, path)).isInstanceOf(FileNotFoundException.class);
    PlanFile.write(HADOOP, path, plan("f1"));
    String good = Files.readString(temporary.resolve("plan.json"));
    for (String bad : List.of(
        good.substring(0, good.length() - 1), good + "{}", good.replace("\"family\"", "\"tribe\""),
        good.replace("\"BF16\"", "\"BF17\""), good.replace("\"offset\":8,", ""), "")) {
      Files.writeString(temporary.resolve("plan.json"), bad);
      assertThatThrownBy(() -> PlanFile.read(HADOOP, path))
          .isInstanceOf(IOException.class)
          .hasMessageStartingWith("Invalid plan " + path);
    }
  }

  @Test
  void planThatSomebodyHoldsIsReadOnce() throws IOException {
    Path path = path("plan.json");
    QuantizationPlan written = plan("one");
    PlanFile.write(HADOOP, path, written);
    assertThat(PlanFile.read(HADOOP, path)).isSameAs(written);
    QuantizationPlan other = plan("two");
    PlanFile.write(HADOOP, path("other.json"), other);
    assertThat(PlanFile.read(HADOOP, path)).isEqualTo(written).isNotSameAs(written);
    Files.writeString(temporary.resolve("plan.json"), "{}");
    assertThatThrownBy(() -> PlanFile.read(HADOOP, path)).isInstanceOf(IOException.class);
  }

  @Test
  void amaxIsExactToTheBit() throws IOException {
    Random random = new Random(5);
    Map<Integer, Float> amax = new HashMap<>(Map.of(0, 0f, 1, Float.MIN_VALUE, 2, Float.MAX_VALUE));
    for (int unit = 3; unit < 5000; unit++) {
      float value = Float.intBitsToFloat(random.nextInt() & 0x7fffffff);
      amax.put(unit, Float.isFinite(value) ? value : 1f);
    }

    Path path = path("amax.json");
    AmaxFile.write(HADOOP, path, amax);
    assertThat(AmaxFile.read(HADOOP, path)).isEqualTo(amax);
    assertThatThrownBy(() -> AmaxFile.write(HADOOP, path, Map.of(4, -1f)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("amax of unit 4 is -1.0");
  }

  @Test
  void amaxThatIsNotFiniteIsReadAsNaN() throws IOException {
    Path path = path("amax.json");
    AmaxFile.write(HADOOP, path, Map.of(0, 2f, 1, Float.NaN, 2, Float.POSITIVE_INFINITY));
    assertThat(AmaxFile.read(HADOOP, path)).isEqualTo(Map.of(0, 2f, 1, Float.NaN, 2, Float.NaN));
  }

  @ParameterizedTest
  @ValueSource(strings = {"[]", "{\"1\":\"NaN\"}", "{\"x\":1}", "{\"1\":1,\"1\":2}", "{\"1\":1", ""})
  void damagedAmax(String content) throws IOException {
    Files.writeString(temporary.resolve("amax.json"), content);
    assertThatThrownBy(() -> AmaxFile.read(HADOOP, path("amax.json")))
        .isInstanceOf(IOException.class)
        .hasMessageStartingWith("Invalid amax file ");
  }

  private Path path(String name) {
    return new Path(temporary.resolve(name).toUri());
  }

  private static QuantizationPlan plan(String fingerprint) {
    LocatedTensor weight = new LocatedTensor("a.weight", DType.BF16, List.of(16L, 32L), "m.safetensors", 8, 1024);
    Unit unit = new Unit(0, "a", "BF16", 32, List.of(new Member("a", weight, null)));
    TensorInfo packed = new TensorInfo("a.weight", DType.U8, List.of(16L, 16L), 0, 256);
    List<ShardItem> items = List.of(
        new ShardItem.Quantized(unit, List.of(new UnitTensor(0, UnitTensor.Part.PACKED, packed))),
        new ShardItem.Copied(weight, new TensorInfo("b", DType.BF16, List.of(16L, 32L), 256, 1280)),
        new ShardItem.Dequantized(
            weight, weight, "E4M3/F32/128x128", new TensorInfo("c", DType.BF16, List.of(16L, 32L), 1280, 2304)));
    return new QuantizationPlan(
        fingerprint,
        "file:/models/m",
        new PlanOptions("modelopt", "rtn", "experts", true, 5L << 30),
        "qwen3_moe",
        256L << 20,
        List.of(new SourceFile("m.safetensors", 1032, 1_700_000_000_123L)),
        List.of(new OutputShard(0, "model-00001-of-00001.safetensors", 2304, items)),
        List.of(new KeptModule("router", "its role")),
        List.of(new DroppedTensor("a.weight_shape", 16)));
  }
}
