package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.sparkfp4.plan.SyntheticPlans.units;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.safetensors.DType;

class SelectionTest {
  @Test
  void includeNarrowsTheTargets() {
    QuantizationPlan plan = plan(SyntheticModel.of("mixtral"), "linears", include("*.layers.1.*.experts.*"));

    assertThat(units(plan)).hasSize(8).allMatch(unit -> unit.name().startsWith("model.layers.1.block_sparse_moe."));
    assertThat(plan.kept()).contains(
        new KeptModule("model.layers.0.block_sparse_moe.experts.0.w1", "not included"),
        new KeptModule("model.layers.1.self_attn.q_proj", "not included"));
  }

  @Test
  void excludeLeavesAWholeLayer() {
    QuantizationPlan plan =
        plan(SyntheticModel.of("mixtral"), "experts", exclude("model.layers.2.block_sparse_moe.experts.*"));

    assertThat(units(plan)).hasSize(16).noneMatch(unit -> unit.name().startsWith("model.layers.2."));
    assertThat(plan.kept()).contains(new KeptModule(
        "model.layers.2.block_sparse_moe.experts.3.w2", "excluded by model.layers.2.block_sparse_moe.experts.*"));
  }

  @Test
  void aPatternOfExpertsIsNoneOfSharedExperts() {
    QuantizationPlan plan = plan(SyntheticModel.of("deepseek_v3"), "mlp", exclude("*.experts.*"));

    assertThat(units(plan)).isNotEmpty()
        .noneMatch(unit -> unit.name().contains(".experts."))
        .anyMatch(unit -> unit.name().contains(".shared_experts."));
  }

  @Test
  void anExcludedModuleMayBeOneThatStaysAnyway() {
    assertThat(units(plan(SyntheticModel.of("mixtral"), "experts", exclude("lm_head")))).hasSize(24);
  }

  @ParameterizedTest
  @CsvSource({
    "--include, '*.mlp.experts.*', no layer that --targets experts chooses",
    "--include, 'model.layers.0.self_attn.*', no layer that --targets experts chooses",
    "--include, 'layers.0', no layer that --targets experts chooses",
    "--exclude, '*.mlp.experts.*', no module of the checkpoint",
    "--exclude, 'model.layers.9*', no module of the checkpoint"
  })
  void refusesAPatternThatMatchesNothing(String option, String pattern, String what) {
    Selection selection = option.equals("--include") ? include(pattern) : exclude(pattern);

    assertThatThrownBy(() -> plan(SyntheticModel.of("mixtral"), "experts", selection))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Invalid " + option + " " + pattern + ": it matches " + what);
  }

  @ParameterizedTest
  @ValueSource(strings = {"*.w1", "*.w2", "*.experts.3.*"})
  void refusesAPartOfTheExperts(String pattern) {
    SyntheticModel model = SyntheticModel.of("mixtral");

    assertThatThrownBy(() -> plan(model, "experts", exclude(pattern)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Cannot quantize model.layers.")
        .hasMessageContaining("(excluded by " + pattern + "): runtimes fuse them into one module; choose both or "
            + "neither, or give --allow-partial-fusion");
  }

  @Test
  void refusesAQueryWithoutItsKey() {
    assertThatThrownBy(() -> plan(SyntheticModel.of("llama"), "linears", exclude("*.k_proj")))
        .hasMessageContaining(".self_attn.q_proj but not model.layers.")
        .hasMessageContaining(".self_attn.k_proj (excluded by *.k_proj): runtimes fuse them into one module");
    assertThat(units(plan(SyntheticModel.of("llama"), "linears", exclude("*.o_proj"))))
        .noneMatch(unit -> unit.name().endsWith("o_proj"));
  }

  @Test
  void allowsAPartOnDemand() {
    Selection selection = new Selection(List.of(), List.of("*.w1", "*.experts.3.*"), false, true);
    QuantizationPlan plan = plan(SyntheticModel.of("mixtral"), "experts", selection);

    assertThat(units(plan)).hasSize(18).allMatch(unit -> unit.members().size() == 1)
        .noneMatch(unit -> unit.name().contains(".experts.3."));
  }

  @Test
  void strictRefusesWhatCannotBeQuantized() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    model.replace("model.layers.1.self_attn.o_proj.weight", DType.BF16, 64, 40);
    Selection strict = new Selection(List.of(), List.of(), true, false);

    assertThat(plan(model, "linears", Selection.ALL).kept()).contains(new KeptModule(
        "model.layers.1.self_attn.o_proj",
        "K 40 is no multiple of 16, here or in a layer that runtimes fuse with it"));
    assertThatThrownBy(() -> plan(model, "linears", strict))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Cannot quantize model.layers.1.self_attn.o_proj.weight (model-00001-of-00002.safetensors), as "
            + "--strict asks: K 40 is no multiple of 16; exclude it, or leave --strict out to keep it as it is");
    assertThat(units(plan(model, "experts", strict))).isNotEmpty();
  }

  @Test
  void keepsQueriesWithAnOutputGate() {
    for (String family : List.of("qwen3_next", "qwen3_5_moe")) {
      QuantizationPlan plan = plan(SyntheticModel.of(family), "linears", Selection.ALL);

      assertThat(units(plan)).filteredOn(unit -> unit.name().contains(".self_attn.")).isNotEmpty()
          .allMatch(unit -> unit.name().endsWith(".o_proj"));
      assertThat(plan.kept()).filteredOn(kept -> kept.reason().equals(GatedAttention.REASON)).hasSize(3);
    }

    SyntheticModel plain = SyntheticModel.of("qwen3_next");
    plain.config().put("attn_output_gate", false);
    assertThat(units(plan(plain, "linears", Selection.ALL)))
        .anyMatch(unit -> unit.name().endsWith(".self_attn.{q_proj,k_proj,v_proj}"));
  }

  @Test
  void patternsStandForWholeNames() {
    ModulePatterns patterns = new ModulePatterns(List.of("a.*.c", "a.?", "[x]+", "*"));

    assertThat(patterns.match("a.b.b.c")).isEqualTo("a.*.c");
    assertThat(patterns.match("a.b")).isEqualTo("a.?");
    assertThat(patterns.unused()).containsExactly("[x]+");
    assertThat(new ModulePatterns(List.of("a.b")).match("a.b.c")).isNull();
    assertThat(new ModulePatterns(List.of("a.b")).match("aXb")).isNull();
  }

  private static Selection include(String... patterns) {
    return new Selection(List.of(patterns), List.of(), false, false);
  }

  private static Selection exclude(String... patterns) {
    return new Selection(List.of(), List.of(patterns), false, false);
  }

  private static QuantizationPlan plan(SyntheticModel model, String targets, Selection selection) {
    return SyntheticPlans.of(model, new PlanOptions("modelopt", "rtn", targets, false, 0, selection, false, null));
  }
}
