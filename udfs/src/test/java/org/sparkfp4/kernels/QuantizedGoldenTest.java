package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.GoldenFile;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightScheme;

/** The routed experts of small quantized checkpoints against what the producer's own functions made of them. */
class QuantizedGoldenTest {
  /** Tensors that share a global scale: an expert's gate and up, or its down. */
  record Case(Model model, WeightScheme scheme, boolean exact, List<String> modules) {
    @Override
    public String toString() {
      return modules.toString();
    }
  }

  /** A checkpoint's shards, and the expected tensors. */
  record Model(List<GoldenFile> shards, GoldenFile expected) {
    static Model open(String name, int shardCount) {
      List<GoldenFile> shards = new ArrayList<>();
      for (int i = 1; i <= shardCount; i++) {
        shards.add(GoldenFile.open(String.format("%s/model-%05d-of-%05d", name, i, shardCount)));
      }

      return new Model(shards, GoldenFile.open(name + ".expected/modelopt_rtn"));
    }

    GoldenFile.Tensor tensor(String... names) {
      for (String name : names) {
        for (GoldenFile shard : shards) {
          if (shard.has(name)) {
            return shard.tensor(name);
          }
        }
      }

      throw new IllegalStateException("Cannot find any of " + String.join(", ", names));
    }
  }

  static List<Case> cases() {
    List<Case> cases = new ArrayList<>();
    add(cases, Model.open("deepseek_v3_fp8", 2), "E4M3/F32/128x128", false);
    add(cases, Model.open("minimax_m3_mxfp8", 2), "E4M3/E8M0/1x32", false);
    add(cases, Model.open("kimi_k25_int4", 1), "INT4/BF16/1x32", false);
    add(cases, Model.open("kimi_k3_mxfp4", 2), Mxfp4.SCHEME.text(), true);
    return cases;
  }

  private static void add(List<Case> cases, Model model, String scheme, boolean exact) {
    for (String name : model.expected.names()) {
      if (name.endsWith(".weight")) {
        String module = name.substring(0, name.length() - ".weight".length());
        WeightScheme parsed = WeightScheme.parse(scheme);
        if (module.endsWith("gate_proj")) {
          cases.add(new Case(model, parsed, exact, List.of(module, module.replace("gate_proj", "up_proj"))));
        } else if (module.endsWith("w1")) {
          cases.add(new Case(model, parsed, exact, List.of(module, module.replace("w1", "w3"))));
        } else if (module.endsWith("down_proj") || module.endsWith("w2")) {
          cases.add(new Case(model, parsed, exact, List.of(module)));
        }
      }
    }
  }

  @Test
  void everyExpertIsFound() {
    assertThat(cases()).hasSize(2 * (3 + 3 + 2 + 6));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void bytesAreTheProducers(Case golden) {
    List<QuantizedUnit.Segment> segments = new ArrayList<>();
    ByteArrayOutputStream packed = new ByteArrayOutputStream();
    ByteArrayOutputStream scales = new ByteArrayOutputStream();
    int cols = 0;
    for (String module : golden.modules) {
      GoldenFile.Tensor codes = golden.model.tensor(module + ".weight", module + ".weight_packed");
      GoldenFile.Tensor sourceScales = golden.model.tensor(module + ".weight_scale_inv", module + ".weight_scale");
      GoldenFile.Tensor expected = golden.model.expected.tensor(module + ".weight");
      int rows = (int) expected.shape()[0];
      cols = (int) (2 * expected.shape()[1]);
      segments.add(new QuantizedUnit.Segment(codes.bytes(), sourceScales.bytes(), rows));
      packed.writeBytes(expected.bytes());
      scales.writeBytes(golden.model.expected.tensor(module + ".weight_scale").bytes());
    }

    QuantizedUnit unit = new QuantizedUnit(golden.scheme, cols, segments.toArray(QuantizedUnit.Segment[]::new));
    float globalScale;
    if (golden.exact) {
      unit.checkCast(Nvfp4Recipe.MODELOPT, packed.toByteArray(), scales.toByteArray());
      unit.checkCast();
      globalScale = Mxfp4.globalScale(Nvfp4Recipe.MODELOPT, unit.largestExponent());
    } else {
      unit.check(Nvfp4Recipe.MODELOPT, packed.toByteArray(), scales.toByteArray());
      globalScale = Nvfp4Recipe.MODELOPT.globalScale(unit.referenceAmax(), ElementType.F32);
    }

    unit.check();
    for (String module : golden.modules) {
      assertThat(golden.model.expected.tensor(module + ".weight_scale_2").scalar()).isEqualTo(globalScale);
    }
  }
}
