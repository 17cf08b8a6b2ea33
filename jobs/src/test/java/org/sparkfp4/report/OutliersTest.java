package org.sparkfp4.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class OutliersTest {
  @Test
  void farAboveTheMedianOfItsKind() {
    List<LayerRow> rows = new ArrayList<>();
    for (int i = 0; i < 21; i++) {
      rows.add(row("layers." + i + ".up_proj", 0.1 + 0.001 * (i % 3 - 1)));
      rows.add(row("layers." + i + ".o_proj", 0.2));
    }

    // spread 0.001: 0.1 + 6 * 1.4826 * 0.001 = 0.1089
    rows.add(row("layers.90.up_proj", 0.1085));
    rows.add(row("layers.91.up_proj", 0.1093));
    rows.add(row("layers.92.up_proj", Double.NaN));
    // no spread: a twentieth above the median
    rows.add(row("layers.93.o_proj", 0.209));
    rows.add(row("layers.94.o_proj", 0.211));
    rows.add(row("layers.95.q_proj", 0.9));
    List<LayerRow> marked = Outliers.mark(rows);

    assertThat(marked).extracting(LayerRow::module).isEqualTo(rows.stream().map(LayerRow::module).toList());
    assertThat(Outliers.of(marked)).extracting(LayerRow::module)
        .containsExactly("layers.92.up_proj", "layers.94.o_proj", "layers.91.up_proj");
  }

  @Test
  void placesOfModules() {
    assertThat(ModulePlace.of("model.layers.3.mlp.experts.17.gate_proj"))
        .isEqualTo(new ModulePlace(3, 17, "gate_proj"));
    assertThat(ModulePlace.of("model.layers.3.mlp.shared_experts.up_proj"))
        .isEqualTo(new ModulePlace(3, null, "up_proj"));
    assertThat(ModulePlace.of("lm_head")).isEqualTo(new ModulePlace(null, null, "lm_head"));
    assertThat(ModulePlace.withinLayer("model.layers.3.self_attn.q_proj")).isEqualTo("self_attn.q_proj");
  }

  private static LayerRow row(String module, double error) {
    ModulePlace place = ModulePlace.of(module);
    return new LayerRow(
        module, "r", place.layer(), place.expert(), place.projection(), 16, 16, "BF16", 1, 1f, 1, error * error, error,
        null, null, null, null, 0, null, null, null, null, null, false);
  }
}
