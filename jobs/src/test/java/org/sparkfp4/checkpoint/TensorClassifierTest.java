package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigInteger;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.FieldSource;
import org.sparkfp4.safetensors.DType;

class TensorClassifierTest {
  static final List<String> FAMILIES = SyntheticModel.FAMILIES;

  @ParameterizedTest
  @FieldSource("FAMILIES")
  void knowsEveryMatrixOfAFamily(String family) {
    SyntheticModel model = SyntheticModel.of(family);
    ModelTensors tensors = classify(model);

    assertThat(tensors.others()).filteredOn(other -> other.role() == Role.OTHER)
        .allMatch(other -> other.tensor().shape().size() < 2 || !other.tensor().name().endsWith(".weight")
            || other.tensor().name().contains("_proj"), "a matrix that the family names, or a vector");
    assertThat(tensors.blocks()).isNotEmpty();
    Set<String> heads = Set.copyOf(tensors.heads());
    assertThat(heads).hasSize(family.equals("bert") ? 0 : heads.size()).allMatch(head -> head.endsWith("head"));
  }

  @ParameterizedTest
  @CsvSource({"mixtral, 12, 0, 0, 3, 0", "qwen2_moe, 12, 3, 0, 3, 0", "deepseek_v3, 8, 2, 1, 0, 3",
    "glm4_moe, 8, 2, 1, 3, 0", "bert, 0, 0, 3, 3, 0"})
  void findsBlocks(String family, int experts, int shared, int dense, int attention, int latent) {
    List<BlockTensors> blocks = classify(SyntheticModel.of(family)).blocks();

    assertThat(count(blocks, Role.ROUTED_EXPERT)).isEqualTo(experts);
    assertThat(count(blocks, Role.SHARED_EXPERT)).isEqualTo(shared);
    assertThat(count(blocks, Role.DENSE_MLP)).isEqualTo(dense);
    assertThat(count(blocks, Role.ATTENTION)).isEqualTo(attention);
    assertThat(count(blocks, Role.LATENT_ATTENTION)).isEqualTo(latent);
  }

  @ParameterizedTest
  @CsvSource({"deepseek_v3, language_model.", "bert, bert."})
  void allowsThePrefixesOfAFamily(String family, String prefix) {
    List<BlockTensors> blocks = classify(new SyntheticModel(family).prefix(prefix).fill()).blocks();

    assertThat(blocks).isNotEmpty().allMatch(block -> block.path().startsWith(prefix));
  }

  @ParameterizedTest
  @CsvSource({"num_hidden_layers, -1, is -1", "num_hidden_layers, 1099511627776, is 1099511627776",
    "num_experts, 1099511627776, is 1099511627776"})
  void refusesCountsThatAreNone(String key, long value, String message) {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    model.config().put(key, value);

    assertThatThrownBy(() -> classify(model))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid config.json: " + key + " " + message);
  }

  @Test
  void refusesSizesOfMoreThan63Bits() {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    model.config().put("hidden_size", new BigInteger("36893488147419103232"));

    assertThatThrownBy(() -> classify(model))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid config.json: it has no whole number hidden_size");
  }

  @Test
  void readsSizesFromTextConfig() {
    SyntheticModel model = SyntheticModel.of("deepseek_v3");
    model.config().putObject("text_config").setAll(model.config().deepCopy());
    model.config().put("hidden_size", 7);

    assertThat(classify(model).blocks()).isNotEmpty();
  }

  @Test
  void leavesLayersBehindTheLastAlone() {
    SyntheticModel model = SyntheticModel.of("glm4_moe");
    ModelTensors tensors = classify(model);

    Set<String> mtp = tensors.others().stream()
        .filter(other -> other.role() == Role.MTP)
        .map(other -> other.tensor().name())
        .collect(Collectors.toSet());
    assertThat(mtp).contains(
        "model.layers.3.eh_proj.weight", "model.layers.3.mlp.experts.3.up_proj.weight", "model.layers.3.enorm.weight")
        .allMatch(name -> name.startsWith("model.layers.3."));
    assertThat(tensors.blocks()).allMatch(block -> block.layer() < 3);

    refused(SyntheticModel.of("glm4_moe").add("model.layers.4.enorm.weight", 64),
        "num_hidden_layers is 3 and num_nextn_predict_layers is 1, but model.layers.4.enorm.weight",
        "is of layer 4");
  }

  @Test
  void allowsModelsWithoutACompressedQuery() {
    SyntheticModel model = SyntheticModel.of("deepseek_v2");
    for (int layer = 0; layer < 3; layer++) {
      String path = "model.layers." + layer + ".self_attn.";
      model.remove(path + "q_a_proj.weight").remove(path + "q_b_proj.weight").add(path + "q_proj.weight", 64, 64);
    }

    assertThat(classify(model).blocks()).filteredOn(block -> block.role() == Role.LATENT_ATTENTION)
        .hasSize(3).allMatch(block -> block.weights().containsKey("q_proj"));
  }

  @Test
  void refusesAGateWithoutItsUp() {
    refused(SyntheticModel.of("qwen3_moe").remove("model.layers.1.mlp.experts.3.up_proj.weight"),
        "Invalid checkpoint: model.layers.1.mlp.experts.3.up_proj.weight is missing, though",
        "model.layers.1.mlp.experts.3.gate_proj.weight is there (model-00001-of-00002.safetensors)");
  }

  @Test
  void refusesAMissingExpert() {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    for (String name : List.of("gate", "up", "down")) {
      model.remove("model.layers.1.mlp.experts.2." + name + "_proj.weight");
    }

    refused(model, "model.layers.1.mlp.experts.2 is missing, though num_experts of config.json is 4");
  }

  @Test
  void refusesMoreExpertsThanTheConfigHas() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    model.config().put("num_local_experts", 3);

    refused(model, "it has model.layers.0.block_sparse_moe.experts.3, though num_local_experts of config.json is 3");
  }

  @Test
  void refusesShapesThatContradictTheConfig() {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    model.replace("model.layers.0.mlp.experts.0.down_proj.weight", DType.BF16, 32, 64);

    refused(model, "Invalid tensor model.layers.0.mlp.experts.0.down_proj.weight (model-00001-of-00002.safetensors)",
        "its shape is [32, 64], but hidden_size of config.json makes dimension 0 64");

    SyntheticModel silent = SyntheticModel.of("qwen3_moe");
    silent.config().remove("moe_intermediate_size");
    refused(silent, "Invalid config.json: it has no whole number moe_intermediate_size");
  }

  @Test
  void refusesALayerWithoutExpertsOrMlp() {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    model.tensors().removeIf(tensor -> tensor.name().startsWith("model.layers.1.mlp.experts"));
    model.add("model.layers.1.mlp.experts.gate_up_proj", 4, 64, 64);

    refused(model, "num_hidden_layers of config.json is 3, but layer 1 has neither an MLP nor experts under the names"
        + " of family qwen3_moe");
  }

  @Test
  void refusesLayersThatTheConfigHasNot() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    model.config().put("num_hidden_layers", 2);

    refused(model, "num_hidden_layers is 2, but model.layers.2.input_layernorm.weight", "is of layer 2");
  }

  @Test
  void refusesTensorsOfOtherRankInPlaceOfAMatrix() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    model.replace("model.layers.0.self_attn.q_proj.weight", DType.BF16, 4, 16, 64);

    refused(model, "Invalid tensor model.layers.0.self_attn.q_proj.weight", "its shape [4, 16, 64] is not that of a");
  }

  private static long count(List<BlockTensors> blocks, Role role) {
    return blocks.stream().filter(block -> block.role() == role).count();
  }

  private static ModelTensors classify(SyntheticModel model) {
    return new TensorClassifier(ModelFamily.of(model.config()), new ModelConfig(model.config()), true)
        .classify(model.tensors());
  }

  private static void refused(SyntheticModel model, String... messages) {
    assertThatThrownBy(() -> classify(model))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContainingAll(messages);
  }
}
