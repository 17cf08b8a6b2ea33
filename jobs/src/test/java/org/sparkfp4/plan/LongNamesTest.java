package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.layouts.Layouts;

/** Tensors whose names have very many parts: a plan and its configs cost what the names are long, whatever the family. */
class LongNamesTest {
  private static final String PARTS = "a.".repeat(10_000);

  static Stream<Arguments> cases() {
    List<Arguments> cases = new ArrayList<>();
    for (String layout : List.of("modelopt", "compressed-tensors")) {
      for (String family : SyntheticModel.FAMILIES) {
        if (!(family.equals("gpt_oss") && layout.equals("compressed-tensors"))) {
          cases.add(Arguments.of(family, layout));
        }
      }
    }

    return cases.stream();
  }

  @ParameterizedTest(name = "{0}, {1}")
  @MethodSource("cases")
  void costWhatTheirLengthIs(String family, String layout) {
    SyntheticModel model = SyntheticModel.of(family);
    for (String start : List.of("", "model.layers.0.", "model.layers.0.mlp.experts.0.", "layers.0.")) {
      for (String end : List.of("norm.weight", "gate_proj.weight", "experts.gate_up_proj")) {
        model.add(start + PARTS + end, 64, 32);
      }
    }

    PlanOptions options = new PlanOptions(layout, "rtn", "mlp", false, 0);
    Hostile.read(12 * PARTS.length(), () -> {
      QuantizationPlan plan = SyntheticPlans.of(model, options);
      assertThat(Layouts.named(layout).configs(model.config(), plan)).isNotEmpty();
    });
  }
}
