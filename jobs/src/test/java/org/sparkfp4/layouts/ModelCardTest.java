package org.sparkfp4.layouts;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.PlanSummary;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.SyntheticPlans;

class ModelCardTest {
  private final SyntheticModel model = SyntheticModel.of("qwen2_moe");
  private final ModelFamily family = ModelFamily.of(model.config());

  @Test
  void saysWhatWasDoneAndHowExactItIs() {
    model.config().put("_name_or_path", "someone/some-moe-7B");
    RoleErrors errors = new RoleErrors(family);
    errors.add("model.layers.0.mlp.experts.0.gate_proj", 100, 1);
    errors.add("model.layers.0.mlp.experts.1.gate_proj", 100, 0.5);
    errors.add("model.layers.0.mlp.shared_expert.gate_proj", 0, 0);

    String card = card(SyntheticPlans.modelOpt("mlp"), "---\ntags: [x]\nlicense: apache-2.0\n---\nlicense: no\n",
        errors.list());

    assertThat(card).startsWith("---\nlicense: apache-2.0\nbase_model: someone/some-moe-7B\n")
        .contains("\n| made by | Spark FP4 9.9 |\n", "\n| layout | modelopt |\n", "\n| targets | mlp |\n")
        .contains("| routed experts | 2 | 0.0866 | 0.1000 | `model.layers.0.mlp.experts.0.gate_proj` |")
        .contains("| shared experts | 1 | 0.0000 | 0.0000 | `model.layers.0.mlp.shared_expert.gate_proj` |")
        .contains("- attention: 12 modules", "vllm serve", "--quantization modelopt_fp4", "trtllm-serve", "0.006")
        .doesNotContain("license: no");
  }

  @Test
  void saysWeightOnly() {
    assertThat(card(new PlanOptions("compressed-tensors", "rtn", "experts", true, 0), "", List.of()))
        .contains("high precision (W4A16)", "vllm serve")
        .doesNotContain("license", "base_model", "0.006", "## Error");
  }

  @ParameterizedTest
  @ValueSource(strings = {"/home/me/model", "./model", "model", ""})
  void namesNoBaseModelByALocalPath(String path) {
    model.config().put("_name_or_path", path);

    assertThat(card(SyntheticPlans.modelOpt("experts"), "", List.of())).doesNotContain("base_model");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "no front matter\nlicense: mit\n", "---\nlicense: mit\nnever closed\n"})
  void inventsNoLicense(String sourceCard) {
    assertThat(FrontMatter.license(sourceCard)).isEmpty();
  }

  @Test
  void carriesANamedLicenseOver() {
    assertThat(FrontMatter.license("---\r\nlicense: other\r\nlicense_name: lm-1\nlicense_link: LICENSE\n---\n"))
        .containsExactly("license: other", "license_name: lm-1", "license_link: LICENSE");
  }

  private String card(PlanOptions options, String sourceCard, List<RoleError> errors) {
    QuantizationPlan plan = SyntheticPlans.of(model, options);
    return ModelCard.text(
        PlanSummary.of(plan, family), plan.fingerprint(), model.config(), sourceCard, "Spark FP4 9.9", errors,
        RequantizedBlocks.of(plan, 0));
  }
}
