package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class UnitNamesTest {
  private static List<String> experts(int layer, int from, int to, String... parts) {
    List<String> units = new ArrayList<>();
    for (int expert = from; expert < to; expert++) {
      for (String part : parts) {
        units.add("model.layers." + layer + ".mlp.experts." + expert + "." + part);
      }
    }

    return units;
  }

  private static List<String> model() {
    List<String> all =
        new ArrayList<>(List.of("model.layers.0.mlp.{gate_proj,up_proj}", "model.layers.0.mlp.down_proj"));
    IntStream.range(1, 60).forEach(layer -> all.addAll(experts(layer, 0, 384, "{gate_proj,up_proj}", "down_proj")));
    return all;
  }

  @Test
  void expertsAreNamedByTheirNumbers() {
    List<String> dead = new ArrayList<>(experts(3, 90, 92, "{gate_proj,up_proj}", "down_proj"));
    dead.addAll(experts(12, 7, 8, "down_proj", "{gate_proj,up_proj}"));

    assertThat(new UnitNames(model()).text(dead))
        .isEqualTo("model.layers.3.mlp.experts: 90, 91; model.layers.12.mlp.experts: 7");
  }

  @Test
  void aPartOfAnExpertIsNotAllOfIt() {
    List<String> units = new ArrayList<>(List.of("model.layers.0.mlp.down_proj"));
    units.addAll(experts(1, 4, 6, "down_proj"));
    units.addAll(experts(1, 9, 10, "{gate_proj,up_proj}", "down_proj"));

    assertThat(new UnitNames(model()).text(units)).isEqualTo("model.layers.0.mlp.down_proj; "
        + "model.layers.1.mlp.experts.*.down_proj: 4, 5; model.layers.1.mlp.experts: 9");
  }

  @Test
  void manyAreCounted() {
    List<String> dead = new ArrayList<>(experts(3, 0, 20, "{gate_proj,up_proj}", "down_proj"));
    dead.addAll(experts(4, 100, 110, "{gate_proj,up_proj}", "down_proj"));
    dead.addAll(experts(5, 0, 384, "{gate_proj,up_proj}", "down_proj"));

    String text = new UnitNames(model()).text(dead);

    assertThat(text).startsWith("model.layers.3.mlp.experts: 0, 1, 2, ")
        .endsWith("; model.layers.4.mlp.experts: 100, 101, 102, 103 and " + (12 + 2 * 384) + " more units");
    assertThat(new UnitNames(model()).text(model()).length()).isLessThan(250);
  }

  @Test
  void oneMore() {
    List<String> units = experts(3, 0, 25, "down_proj");

    assertThat(new UnitNames(model()).text(units)).endsWith(", 23 and 1 more unit");
  }
}
