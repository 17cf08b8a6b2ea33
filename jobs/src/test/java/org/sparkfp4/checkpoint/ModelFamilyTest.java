package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.FieldSource;
import org.sparkfp4.fuzz.Hostile;

class ModelFamilyTest {
  static final List<String> FAMILIES = SyntheticModel.FAMILIES;

  @ParameterizedTest
  @FieldSource("FAMILIES")
  void isFoundByItsModelType(String family) {
    // a template may be of a member of its family: Kimi K2.5 of Kimi K2
    String expected = family.equals("kimi_k25") ? "kimi_k2" : family;
    assertThat(ModelFamily.of(SyntheticModel.of(family).config()).name()).isEqualTo(expected);
  }

  @Test
  void isFoundByArchitectureWhereTheModelTypeIsNew() {
    ObjectNode config = JsonNodeFactory.instance.objectNode().put("model_type", "my_qwen");
    config.putArray("architectures").add("Qwen3MoeForCausalLM");

    assertThat(ModelFamily.of(config).name()).isEqualTo("qwen3_moe");
  }

  @Test
  void isFoundByTheModelTypeBeforeTheArchitecture() {
    ObjectNode config = JsonNodeFactory.instance.objectNode().put("model_type", "kimi_k2");
    config.putArray("architectures").add("DeepseekV3ForCausalLM");

    assertThat(ModelFamily.of(config).name()).isEqualTo("kimi_k2");
  }

  @Test
  void isFoundInTextConfig() {
    ObjectNode config = JsonNodeFactory.instance.objectNode().put("model_type", "kimi_vl");
    config.putObject("text_config").put("model_type", "deepseek_v3");

    assertThat(ModelFamily.of(config).name()).isEqualTo("deepseek_v3");
  }

  /** The text part of MiniMax-M3 is said to be a minimax_m2: the whole says what it is. */
  @Test
  void isFoundByTheOuterModelTypeFirst() {
    ObjectNode config = JsonNodeFactory.instance.objectNode().put("model_type", "minimax_m3_vl");
    config.putObject("text_config").put("model_type", "minimax_m2");

    assertThat(ModelFamily.of(config).name()).isEqualTo("minimax_m3");
  }

  @Test
  void refusesAnUnknownModelType() {
    ObjectNode config = JsonNodeFactory.instance.objectNode().put("model_type", "gpt_old");
    config.putArray("architectures").add("GptOldForCausalLM");

    assertThatThrownBy(() -> ModelFamily.of(config))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Cannot tell the model family: config.json has model_type [gpt_old] and architectures "
            + "[GptOldForCausalLM]; known model types are bert, deepseek_v2, deepseek_v3, deepseek_v32, deepseek_v4,")
        .hasMessageEndingWith("qwen3_vl_moe, qwen3_vl_moe_text; describe another with --family FILE");
  }

  @Test
  void refusesAFolderWithoutConfig() {
    assertThatThrownBy(() -> ModelFamily.of(MissingNode.getInstance()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Cannot plan without config.json");
  }

  @ParameterizedTest
  @CsvSource({
    "mixtral, model.layers.3.block_sparse_moe.experts.7.w3.weight, ROUTED_EXPERT",
    "mixtral, model.layers.3.block_sparse_moe.gate.weight, ROUTER",
    "minimax_m2, model.layers.61.block_sparse_moe.e_score_correction_bias, OTHER",
    "minimax_m3, language_model.model.layers.59.block_sparse_moe.experts.127.w2.weight, ROUTED_EXPERT",
    "minimax_m3, language_model.model.layers.3.block_sparse_moe.shared_experts.up_proj.weight, SHARED_EXPERT",
    "minimax_m3, language_model.model.layers.2.mlp.down_proj.weight, DENSE_MLP",
    "minimax_m3, model.layers.3.self_attn.index_k_proj.weight, INDEXER",
    "minimax_m3, model.layers.3.self_attn.k_proj.weight, ATTENTION",
    "minimax_m3, patch_merge_mlp.linear_2.weight, VISION",
    "minimax_m3, language_model.model.mtp.layers.0.transformer_layer.self_attn.q_proj.weight, MTP",
    "qwen2_moe, model.layers.3.mlp.shared_expert.up_proj.weight, SHARED_EXPERT",
    "qwen2_moe, model.layers.3.mlp.shared_expert_gate.weight, ROUTER",
    "qwen3_moe, model.layers.3.mlp.gate_proj.weight, DENSE_MLP",
    "qwen3_moe, model.layers.3.self_attn.q_norm.weight, NORM",
    "deepseek_v3, model.layers.3.self_attn.kv_a_proj_with_mqa.weight, LATENT_ATTENTION",
    "deepseek_v3, model.layers.3.self_attn.kv_b_proj.weight, ABSORBED",
    "deepseek_v3, language_model.model.layers.3.mlp.shared_experts.up_proj.weight, SHARED_EXPERT",
    "deepseek_v3, vision_tower.blocks.0.mlp.fc1.weight, VISION",
    "deepseek_v2, language_model.model.layers.3.mlp.shared_experts.up_proj.weight, OTHER",
    "glm4_moe, model.layers.3.self_attn.k_proj.bias, ATTENTION",
    "gpt_oss, model.layers.3.mlp.experts.gate_up_proj_bias, ROUTED_EXPERT",
    "gpt_oss, model.layers.3.mlp.experts.other_bias, OTHER",
    "llama, lm_head.weight, LM_HEAD",
    "bert, bert.encoder.layer.11.attention.self.key.weight, ATTENTION",
    "bert, encoder.layer.11.intermediate.dense.weight, DENSE_MLP",
    "bert, bert.embeddings.word_embeddings.weight, EMBEDDING",
    "bert, pooler.dense.weight, POOLER",
    "bert, embeddings.LayerNorm.weight, NORM",
    "nemotron_h, backbone.norm_f.weight, NORM",
    "phimoe, model.layers.0.input_layernorm.bias, NORM",
    "glm5, model.layers.0.self_attn.indexer.k_norm.weight, INDEXER",
    "llama, model.layers.0.normalizer.weight, OTHER",
    "llama, weight, OTHER"
  })
  void tellsRoles(String family, String tensor, Role role) {
    assertThat(ModelFamily.of(SyntheticModel.of(family).config()).role(tensor)).isEqualTo(role);
  }

  @Test
  void nameOfVeryManyPartsCostsWhatItsLengthIs() {
    String tensor = ".a".repeat(20_000);
    ModelFamily family = ModelFamily.of(SyntheticModel.of("llama").config());

    Hostile.read(tensor.length(), () -> assertThat(family.role(tensor)).isEqualTo(Role.OTHER));
  }

  @Test
  void refusesAFileWithAMistake() {
    refused("{\"families\": [{\"name\": \"x\", \"model_types\": [\"x\"], \"layers\": \"l.{layer}\", \"blocks\": [\"b\"]}]}",
        "Invalid family file my.json: Invalid model family x: there is no block b");
    refused("""
        {"blocks": {"b": {"role": "dense_mlp", "path": "l.{layer}", "linears": {"up": []}, "fused": [["up", "gate"]]}},
         "families": []}""",
        "Invalid family file my.json: field blocks.b: Invalid block l.{layer}: fused [up, gate] names a layer that is "
            + "not one of [up]");
    refused("{\"blokcs\": {}}", "Invalid family file my.json: field blokcs: Unrecognized field \"blokcs\"");
    refused("{\"families\": [{\"name\": \"x\"}]}",
        "Invalid family file my.json: field families[0]: Invalid model family x: it has neither model_types nor");
    refused("{\"families\": []}", "Invalid family file my.json: Invalid field families: there is none");
    refused("{\"families\"", "Invalid family file my.json: it is no JSON: ");
  }

  @Test
  void readsAFamilyOfTheUsersOwn() throws Exception {
    ModelFamilies families = ModelFamilies.ofFile("my.json", """
        {
          "blocks": {
            "my_experts": {
              "role": "routed_expert",
              "path": "model.layers.{layer}.moe.experts.{expert}",
              "linears": {"up": ["ffn|inner", "hidden_size"], "down": ["hidden_size", "ffn|inner"]}
            }
          },
          "families": [{
            "name": "mine", "model_types": ["my_moe"], "layers": "model.layers.{layer}", "experts": "num_experts",
            "blocks": ["attention", "my_experts"], "kept": {"router": ["model.layers.{layer}.moe.gate"]}
          }]
        }""".getBytes(StandardCharsets.UTF_8));
    ModelFamily family = families.of(new ModelConfig(JsonNodeFactory.instance.objectNode().put("model_type", "my_moe")));

    assertThat(family.name()).isEqualTo("mine");
    assertThat(family.digest()).matches("[0-9a-f]{64}");
    assertThat(family.role("model.layers.3.moe.experts.7.up.weight")).isEqualTo(Role.ROUTED_EXPERT);
    assertThat(family.role("model.layers.3.moe.gate.weight")).isEqualTo(Role.ROUTER);
    assertThatThrownBy(() -> families.of(new ModelConfig(SyntheticModel.of("mixtral").config())))
        .hasMessageContaining("known model types are my_moe; describe another with --family FILE");
  }

  private static void refused(String json, String message) {
    assertThatThrownBy(() -> ModelFamilies.ofFile("my.json", json.getBytes(StandardCharsets.UTF_8)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(message);
  }
}
