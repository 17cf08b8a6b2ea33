package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.sparkfp4.safetensors.DType;

class ExpertStacksTest {
  private static final String PATH = "model.layers.0.mlp.experts.";

  @Test
  void slicesRowsThatFollowOneAnother() {
    List<LocatedTensor> slices = unstack("qwen3_5_moe", 32, 64, false,
        stack("gate_up_proj", 2, 64, 64), stack("down_proj", 2, 64, 32));

    assertThat(slices).hasSize(6);
    assertThat(named(slices, PATH + "1.up_proj.weight")).isEqualTo(new LocatedTensor(
        PATH + "1.up_proj.weight", DType.BF16, List.of(32L, 64L), "f", 1000 + (64 + 32) * 64 * 2, 32 * 64 * 2));
    assertThat(named(slices, PATH + "1.down_proj.weight").offset()).isEqualTo(1000 + 64 * 32 * 2);
  }

  @Test
  void slicesTransposedMatricesByStrides() {
    // 2I is H: gate_up_proj alone fits both orders, down_proj tells
    List<LocatedTensor> slices = unstack("qwen3_vl_moe", 32, 64, false,
        stack("gate_up_proj", 2, 64, 64), stack("down_proj", 2, 32, 64));

    LocatedTensor up = named(slices, PATH + "1.up_proj.weight");
    assertThat(up.shape()).containsExactly(32L, 64L);
    assertThat(up.strides()).containsExactly(2L, 64L * 2);
    assertThat(up.offset()).isEqualTo(1000 + 64 * 64 * 2 + 32 * 2);
    assertThat(up.length()).isEqualTo(32 * 64 * 2);
  }

  @Test
  void slicesRowsThatAlternate() {
    List<LocatedTensor> slices = unstack("gpt_oss", 32, 48, false,
        stack("gate_up_proj", 2, 64, 48), stack("down_proj", 2, 48, 32));

    LocatedTensor up = named(slices, PATH + "1.up_proj.weight");
    assertThat(up.strides()).containsExactly(2L * 48 * 2, 2L);
    assertThat(up.offset()).isEqualTo(1000 + 64 * 48 * 2 + 48 * 2);
  }

  @Test
  void keepsStacksWhereRuntimesWantThem() {
    List<LocatedTensor> slices = unstack("llama4", 32, 48, true,
        stack("gate_up_proj", 2, 48, 64, "model.layers.0.feed_forward.experts."),
        stack("down_proj", 2, 32, 48, "model.layers.0.feed_forward.experts."));

    LocatedTensor stack = named(slices, "model.layers.0.feed_forward.experts.gate_up_proj.weight");
    assertThat(stack.shape()).containsExactly(2L, 64L, 48L);
    assertThat(stack.strides()).containsExactly(48L * 64 * 2, 2L, 64L * 2);
  }

  @Test
  void refusesAnOrderThatTheFamilyHasNot() {
    assertThatThrownBy(() -> unstack("qwen3_5_moe", 32, 48, false,
        stack("gate_up_proj", 2, 48, 64), stack("down_proj", 2, 32, 48)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid tensor model.layers.0.mlp.experts.gate_up_proj (f): its shape is [2, 48, 64], but family "
            + "qwen3_5_moe and config.json make it [2, 64, 48] ([experts, rows, K])");
  }

  @Test
  void refusesStacksOfDifferentOrdersInALayer() {
    assertThatThrownBy(() -> unstack("qwen3_vl_moe", 32, 48, false,
        stack("gate_up_proj", 2, 48, 64), stack("down_proj", 2, 48, 32)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Invalid tensor model.layers.0.mlp.experts.down_proj (f)")
        .hasMessageContaining("and it is not in the order of the layer's other stacks");
  }

  @Test
  void refusesAnOrderThatNothingTells() throws Exception {
    ModelFamilies families = ModelFamilies.ofFile("my.json", """
        {
          "blocks": {
            "square": {
              "role": "routed_expert", "path": "model.layers.{layer}.mlp.experts.{expert}",
              "linears": {"up_proj": ["moe_intermediate_size", "hidden_size"]},
              "stacks": {"up_proj": {"linears": ["up_proj"], "orders": ["rows_k", "k_rows"]}}
            }
          },
          "families": [{"name": "square", "model_types": ["square"], "layers": "model.layers.{layer}",
            "experts": "num_experts", "blocks": ["square"], "kept": {}}]
        }""".getBytes(StandardCharsets.UTF_8));
    ModelConfig config = config("square", 64, 64);

    assertThatThrownBy(() -> new ExpertStacks(families.of(config), config, false)
        .unstack(List.of(stack("up_proj", 2, 64, 64))))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Cannot tell rows and K apart in model.layers.0.mlp.experts.up_proj [2, 64, 64] (f): family square "
            + "stores them in either order; give --family a file whose stacks have one order");
  }

  private static List<LocatedTensor> unstack(
      String type, int intermediate, int hidden, boolean batch, LocatedTensor... stacks) {
    ModelConfig config = config(type, intermediate, hidden);
    ModelFamily family = ModelFamilies.builtIn().of(config);
    return new ExpertStacks(family, config, batch).unstack(List.of(stacks));
  }

  private static ModelConfig config(String type, int intermediate, int hidden) {
    ObjectNode config = JsonNodeFactory.instance.objectNode();
    for (String key : List.of("moe_intermediate_size", "intermediate_size")) {
      config.put(key, intermediate);
    }

    for (String key : List.of("num_experts", "num_local_experts")) {
      config.put(key, 2);
    }

    return new ModelConfig(config.put("model_type", type).put("hidden_size", hidden).put("num_hidden_layers", 1));
  }

  private static LocatedTensor stack(String name, long experts, long second, long third) {
    return stack(name, experts, second, third, PATH);
  }

  private static LocatedTensor stack(String name, long experts, long second, long third, String path) {
    return new LocatedTensor(
        path + name, DType.BF16, List.of(experts, second, third), "f", 1000, experts * second * third * 2);
  }

  private static LocatedTensor named(List<LocatedTensor> tensors, String name) {
    return tensors.stream().collect(Collectors.toMap(LocatedTensor::name, Function.identity())).get(name);
  }
}
