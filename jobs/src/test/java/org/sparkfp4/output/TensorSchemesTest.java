package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.DroppedTensor;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

class TensorSchemesTest {
  @Test
  void rangesStandForTheNamesAndNoOthers() {
    List<ShardItem> items = new ArrayList<>();
    for (int layer : new int[] {0, 1, 2, 5}) {
      for (int expert = 0; expert < (layer == 5 ? 2 : 3); expert++) {
        items.add(copied("layers." + layer + ".experts." + expert + ".w"));
      }
    }

    items.add(copied("norm"));
    items.add(copied("layers.007.w"));

    assertThat(TensorSchemes.of(plan(items, List.of(new DroppedTensor("layers.3.shape", 16))))).containsExactly(
        new TensorScheme("layers.*.experts.*.w", List.of("0-2", "0-2"), 9, "BF16", "copied"),
        new TensorScheme("layers.*.experts.*.w", List.of("5", "0-1"), 2, "BF16", "copied"),
        new TensorScheme("norm", List.of(), 1, "BF16", "copied"),
        new TensorScheme("layers.007.w", List.of(), 1, "BF16", "copied"),
        new TensorScheme("layers.*.shape", List.of("3"), 1, "", "dropped"));
  }

  private static ShardItem copied(String name) {
    return new ShardItem.Copied(
        new LocatedTensor(name, DType.BF16, List.of(1L), "f", 0, 2),
        new TensorInfo(name, DType.BF16, List.of(1L), 0, 2));
  }

  private static QuantizationPlan plan(List<ShardItem> items, List<DroppedTensor> dropped) {
    return new QuantizationPlan(
        "f", "file:/source", new PlanOptions("modelopt", "rtn", "experts", false, 0), "family", 1, List.of(),
        List.of(new OutputShard(0, "s", 0, items)), List.of(), dropped);
  }
}
