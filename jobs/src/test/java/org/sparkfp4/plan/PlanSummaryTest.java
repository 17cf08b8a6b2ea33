package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.plan.SyntheticPlans.modelOpt;

import org.junit.jupiter.api.Test;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SyntheticModel;

class PlanSummaryTest {
  @Test
  void countsWhatGoesInAndOut() {
    SyntheticModel model = new SyntheticModel("mixtral").sizes(64, 32, 2, 1).fill();
    PlanSummary summary = summary(model, SyntheticPlans.of(model, modelOpt("experts")));

    long quantized = 2 * 3 * 32 * 64;
    long scalars = 2 * 3 * 8;
    assertThat(summary.tensorsIn()).isEqualTo(model.tensors().size());
    assertThat(summary.tensorsOut()).isEqualTo(model.tensors().size() + 3 * 6);
    assertThat(summary.bytesIn()).isEqualTo(model.tensors().stream().mapToLong(LocatedTensor::length).sum());
    assertThat(summary.bytesOut()).isEqualTo(summary.bytesIn() - 2 * quantized + quantized * 9 / 16 + scalars);
    assertThat(summary.parameters()).isEqualTo(summary.bytesIn() / 2);
    assertThat(summary.quantizedParameters()).isEqualTo(quantized);
    assertThat(summary.units()).isEqualTo(4);
    assertThat(summary.cutUnits()).isZero();
    assertThat(summary.taskBytes()).isEqualTo(64 * 64 * 2 + 64 * 64 * 9 / 16);
    assertThat(summary.kept()).containsEntry("attention", 4L).containsEntry("router", 1L)
        .containsEntry("output head", 1L).containsEntry("embedding", 1L);
    assertThat(summary.shards()).hasSize(1);
  }

  @Test
  void warnsWhenLittleOfAModelWithExpertsIsQuantized() {
    SyntheticModel model = new SyntheticModel("mixtral").sizes(64, 32, 1, 3).fill();
    assertThat(summary(model, SyntheticPlans.of(model, modelOpt("experts"))).warnings())
        .first().asString().startsWith("only 27.0 % of the parameters are quantized");

    assertThat(summary(model, SyntheticPlans.of(model, new PlanOptions("modelopt", "rtn", "linears", true, 0)))
        .warnings()).isEmpty();
    SyntheticModel dense = SyntheticModel.of("bert");
    assertThat(summary(dense, SyntheticPlans.of(dense, modelOpt("mlp"))).warnings())
        .singleElement().asString().startsWith("input scales are 1.0");
  }

  @Test
  void countsTheMemoryOfCutUnits() {
    SyntheticModel model = new SyntheticModel("mixtral").sizes(256, 128, 2, 1).fill();
    PlanSummary summary = summary(model, SyntheticPlans.of(model, modelOpt("experts"), 32 * 512));

    assertThat(summary.cutUnits()).isEqualTo(4);
    // slabs of down: 64 rows of 128 columns; scales of all 256 rows
    assertThat(summary.taskBytes()).isEqualTo(64 * (256 + 72) + 256 * 8);
  }

  @Test
  void printsEverything() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    String text = summary(model, SyntheticPlans.of(model, modelOpt("experts"))).text();

    assertThat(text)
        .contains("model      mixtral to NVFP4 (W4A4), layout modelopt, targets experts, scale search rtn\n")
        .contains("tensors    60 in, 168 out\n")
        .contains("units      24, of which 0 are over 268.44 MB and cut\n")
        .contains("shards     1\n           model-00001-of-00001.safetensors  ")
        .contains("kept       output head (1); embedding (1); attention (12); router (3)\n")
        .contains("warning    input scales are 1.0");

    String many = summary(model, SyntheticPlans.of(model, new PlanOptions("modelopt", "rtn", "experts", false, 4000)))
        .text();
    assertThat(many).containsPattern("shards     \\d+, [\\d.]+ (kB|bytes) to [\\d.]+ kB each\n");
  }

  private static PlanSummary summary(SyntheticModel model, QuantizationPlan plan) {
    return PlanSummary.of(plan, ModelFamily.of(model.config()));
  }
}
