package org.sparkfp4.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;
import static org.sparkfp4.plan.SyntheticPlans.modelOpt;
import static org.sparkfp4.plan.SyntheticPlans.units;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.FieldSource;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

class PlannerTest {
  static final List<String> FAMILIES = SyntheticModel.FAMILIES;

  @Test
  void pairsGateAndUpThatLieInDifferentShards() throws Exception {
    QuantizationPlan plan = golden();

    assertThat(units(plan)).hasSize(16);
    assertThat(units(plan).map(Unit::id)).containsExactlyElementsOf(
        IntStream.range(0, 16).boxed().toList());
    Unit pair = units(plan).filter(unit -> unit.members().size() == 2).findFirst().orElseThrow();
    assertThat(pair.name()).isEqualTo("model.layers.0.mlp.experts.0.{gate_proj,up_proj}");
    assertThat(pair.scheme()).isEqualTo("BF16");
    assertThat(pair.cols()).isEqualTo(128);
    assertThat(pair.members()).extracting(member -> member.weight().file())
        .containsExactly("model-00001-of-00003.safetensors", "model-00003-of-00003.safetensors");
    assertThat(plan.family()).isEqualTo("qwen3_moe");
    assertThat(plan.sources()).hasSize(3);
  }

  @Test
  void carriesOverEveryTensorOfTheSource() throws Exception {
    Checkpoint checkpoint = goldenCheckpoint();
    QuantizationPlan plan = golden();

    Set<String> source = new HashSet<>();
    for (LocatedTensor tensor : checkpoint.tensors()) {
      source.add(tensor.name());
    }

    Set<String> copied = new HashSet<>();
    Set<String> quantized = new HashSet<>();
    for (OutputShard shard : plan.shards()) {
      for (ShardItem item : shard.items()) {
        if (item instanceof ShardItem.Copied copy) {
          copied.add(copy.source().name());
          assertThat(copy.output().length()).isEqualTo(copy.source().length());
          assertThat(copy.output().shape()).isEqualTo(copy.source().shape());
        }
      }

      shard.units().forEach(unit -> unit.members().forEach(member -> quantized.add(member.weight().name())));
    }

    assertThat(quantized).hasSize(24).allMatch(name -> name.contains(".mlp.experts."));
    assertThat(copied).doesNotContainAnyElementsOf(quantized);
    copied.addAll(quantized);
    assertThat(copied).isEqualTo(source);
  }

  @ParameterizedTest
  @FieldSource("FAMILIES")
  void leavesNoGapsAndAlignsEveryTensor(String family) {
    SyntheticModel model = SyntheticModel.of(family)
        .dtype(DType.I64).add("extra.ids", 3)
        .dtype(DType.U8).add("extra.bytes", 5)
        .dtype(DType.F32).add("extra.scalar");
    for (boolean weightOnly : List.of(false, true)) {
      QuantizationPlan plan =
          SyntheticPlans.of(model, new PlanOptions("modelopt", "rtn", "linears", weightOnly, 30_000));

      assertThat(plan.shards()).hasSizeGreaterThan(1);
      plan.shards().forEach(PlannerTest::checkPlaces);
    }
  }

  private static void checkPlaces(OutputShard shard) {
    long place = 0;
    for (ShardItem item : shard.items()) {
      for (TensorInfo tensor : item.outputs()) {
        assertThat(tensor.begin()).as(tensor.name()).isEqualTo(place);
        assertThat(tensor.begin() % Math.max(1, tensor.dtype().bits() / 8)).as(tensor.name()).isZero();
        place = tensor.end();
      }
    }

    assertThat(shard.dataBytes()).isEqualTo(place);
    List<TensorInfo> tensors = shard.items().stream().flatMap(item -> item.outputs().stream()).toList();
    assertThat(SafetensorsHeader.encode(tensors, SafetensorsHeader.FORMAT_PT)).isNotEmpty();
  }

  @Test
  void givesAUnitOfOddLengthAShardOfItsOwn() {
    SyntheticModel dense = new SyntheticModel("llama").sizes(16, 16, 0, 1).fill();
    dense.replace("model.layers.0.mlp.gate_proj.weight", DType.BF16, 3, 16);
    dense.replace("model.layers.0.mlp.up_proj.weight", DType.BF16, 4, 16);
    QuantizationPlan plan = SyntheticPlans.of(dense, modelOpt("mlp"));

    assertThat(plan.shards()).hasSize(2);
    plan.shards().forEach(PlannerTest::checkPlaces);
    assertThat(plan.shards().get(1).items()).hasSize(1);
  }

  @Test
  void keepsShardsEvenAndGivesLargeItemsTheirOwn() {
    SyntheticModel model = new SyntheticModel("mixtral").sizes(1024, 512, 8, 8).fill();
    long limit = 4_000_000;
    QuantizationPlan plan = SyntheticPlans.of(model, new PlanOptions("modelopt", "rtn", "experts", false, limit));

    List<OutputShard> shards = plan.shards();
    assertThat(shards).allMatch(shard -> shard.dataBytes() <= limit);
    assertThat(shards.get(shards.size() - 1).dataBytes()).isGreaterThan(limit / 3);
    assertThat(shards).extracting(OutputShard::file)
        .startsWith("model-00001-of-%05d.safetensors".formatted(shards.size()));

    QuantizationPlan tiny = SyntheticPlans.of(model, new PlanOptions("modelopt", "rtn", "experts", false, 100_000));
    assertThat(tiny.shards()).allMatch(shard -> shard.dataBytes() <= 100_000 || shard.items().size() == 1);
  }

  @Test
  void writesOneShardOfASmallModel() {
    QuantizationPlan plan = SyntheticPlans.of(SyntheticModel.of("mixtral"), modelOpt("experts"));

    assertThat(plan.shards()).hasSize(1);
    assertThat(plan.shards().get(0).file()).isEqualTo("model-00001-of-00001.safetensors");
  }

  @ParameterizedTest
  @CsvSource({
    "deepseek_v3, experts, 4, 2", "deepseek_v3, mlp, 10, 2", "deepseek_v3, linears, 19, 2",
    "mixtral, experts, 6, 2", "mixtral, mlp, 6, 2", "mixtral, linears, 12, 3",
    "bert, mlp, 6, 1", "bert, linears, 12, 3"
  })
  void targetsChooseRoles(String family, String targets, int units, int largestUnit) {
    SyntheticModel model = new SyntheticModel(family).sizes(64, 32, 1, 3).fill();
    QuantizationPlan plan = SyntheticPlans.of(model, modelOpt(targets));

    assertThat(units(plan)).hasSize(units);
    assertThat(units(plan).mapToInt(unit -> unit.members().size()).max()).hasValue(largestUnit);
  }

  @Test
  void keepsAllExpertsOfALayerWhoseKIsNoMultipleOf16() {
    SyntheticModel model = new SyntheticModel("qwen3_moe").sizes(64, 40, 2, 2).fill();
    assertThatThrownBy(() -> SyntheticPlans.of(model, modelOpt("experts")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Cannot find a layer to quantize: targets experts choose none of family qwen3_moe")
        .hasMessageContaining("12 layers: K 40 is no multiple of 16");

    QuantizationPlan plan = SyntheticPlans.of(model, modelOpt("linears"));
    assertThat(units(plan)).hasSize(4).allMatch(unit -> unit.name().contains("self_attn"));
    assertThat(plan.kept()).contains(new KeptModule(
        "model.layers.1.mlp.experts.1.up_proj",
        "K 40 is no multiple of 16, here or in a layer that runtimes fuse with it"));
  }

  @Test
  void keepsEveryLayerThatIsNotATargetAndSaysWhy() {
    QuantizationPlan plan = SyntheticPlans.of(SyntheticModel.of("deepseek_v3"), modelOpt("linears"));

    assertThat(plan.kept()).extracting(KeptModule::module, KeptModule::reason).contains(
        tuple("lm_head", "output head"),
        tuple("model.embed_tokens", "embedding"),
        tuple("model.layers.1.mlp.gate", "router"),
        tuple(
            "model.layers.1.self_attn.kv_b_proj", "absorbed into latent attention by runtimes"),
        tuple("model.layers.3.eh_proj", "multi-token prediction"),
        tuple("model.layers.3.mlp.experts.0.gate_proj", "multi-token prediction"));
    assertThat(plan.kept()).extracting(KeptModule::module).doesNotHaveDuplicates()
        .noneMatch(module -> module.contains("norm"));
  }

  @Test
  void listsTheHeadOfATiedModel() {
    SyntheticModel model = SyntheticModel.of("llama").remove("lm_head.weight");

    assertThat(SyntheticPlans.of(model, modelOpt("mlp")).kept()).contains(new KeptModule("lm_head", "output head"));
  }

  @Test
  void refusesFusedLayersOfDifferentDtypes() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    model.replace("model.layers.1.block_sparse_moe.experts.2.w3.weight", DType.F32, 32, 64);

    assertThatThrownBy(() -> SyntheticPlans.of(model, modelOpt("experts")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Cannot quantize model.layers.1.block_sparse_moe.experts.2.w1.weight (BF16, K 64,")
        .hasMessageContaining("and model.layers.1.block_sparse_moe.experts.2.w3.weight (F32, K 64,");
  }

  @Test
  void refusesTargetsThatTheFamilyHasNot() {
    assertThatThrownBy(() -> SyntheticPlans.of(SyntheticModel.of("llama"), modelOpt("experts")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("targets experts choose none of family llama in file:/models/synthetic")
        .hasMessageContaining("12 layers: attention; 9 layers: dense MLP");
    assertThatThrownBy(() -> SyntheticPlans.of(SyntheticModel.of("llama"), modelOpt("everything")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid targets: everything; known are experts, mlp, linears");
  }

  @Test
  void refusesATensorWithTheNameOfAnOutput() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    model.add("model.layers.0.block_sparse_moe.experts.0.w1.input_scale");

    assertThatThrownBy(() -> SyntheticPlans.of(model, modelOpt("experts")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("its tensor model.layers.0.block_sparse_moe.experts.0.w1.input_scale has the name");
  }

  @Test
  void fingerprintTellsWhatTheBytesDependOn() {
    Set<String> fingerprints = new HashSet<>();
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    fingerprints.add(fingerprint(model, modelOpt("experts")));
    fingerprints.add(fingerprint(model, modelOpt("linears")));
    fingerprints.add(fingerprint(model, new PlanOptions("modelopt", "rtn", "experts", true, 0)));
    fingerprints.add(fingerprint(model, new PlanOptions("modelopt", "other", "experts", false, 0)));
    fingerprints.add(fingerprint(model, new PlanOptions("modelopt", "rtn", "experts", false, 1 << 20)));
    fingerprints.add(fingerprint(model, new PlanOptions("compressed-tensors", "rtn", "experts", false, 0)));
    fingerprints.add(fingerprint(SyntheticModel.of("qwen3_moe").add("more", 2), modelOpt("experts")));
    SyntheticModel renamed = SyntheticModel.of("qwen3_moe");
    renamed.config().put("torch_dtype", "bfloat16");
    fingerprints.add(fingerprint(renamed, modelOpt("experts")));

    assertThat(fingerprints).hasSize(8).allMatch(fingerprint -> fingerprint.matches("[0-9a-f]{64}"));
    assertThat(fingerprint(SyntheticModel.of("qwen3_moe"), modelOpt("experts")))
        .isEqualTo(fingerprint(model, modelOpt("experts")));
  }

  @Test
  void doesNotDependOnTheOrderInWhichTensorsAreListed() {
    SyntheticModel model = SyntheticModel.of("glm4_moe");
    QuantizationPlan plan = SyntheticPlans.of(model, modelOpt("experts"));
    List<LocatedTensor> shuffled = new ArrayList<>(model.tensors());
    Collections.shuffle(shuffled, new Random(7));
    model.tensors().clear();
    model.tensors().addAll(shuffled);

    assertThat(SyntheticPlans.of(model, modelOpt("experts")).shards()).isEqualTo(plan.shards());
  }

  @Test
  void goesThroughJson() throws Exception {
    ObjectMapper json = new ObjectMapper();
    QuantizationPlan plan = golden();

    assertThat(json.readValue(json.writeValueAsBytes(plan), QuantizationPlan.class)).isEqualTo(plan);
  }

  @Test
  void plansAQuarterMillionTensors() {
    SyntheticModel model = new SyntheticModel("kimi_k2").sizes(7168, 2048, 384, 217);
    model.config().put("num_nextn_predict_layers", 0);
    model.fill();
    assertThat(model.tensors()).hasSizeGreaterThan(250_000);

    QuantizationPlan plan = SyntheticPlans.of(model, modelOpt("experts"));

    assertThat(units(plan)).hasSize(2 * 384 * 216);
    long total = plan.shards().stream().mapToLong(OutputShard::dataBytes).sum();
    assertThat(plan.shards()).hasSizeBetween(500, 540).allMatch(shard -> shard.dataBytes() <= total / 512);
  }

  private static String fingerprint(SyntheticModel model, PlanOptions options) {
    return SyntheticPlans.of(model, options).fingerprint();
  }

  private static Checkpoint goldenCheckpoint() throws Exception {
    return Checkpoint.open(
        new Configuration(), Path.of("src/test/resources/golden/qwen3_moe_bf16").toUri().toString());
  }

  private static QuantizationPlan golden() throws Exception {
    Checkpoint checkpoint = goldenCheckpoint();
    return new Planner(
        checkpoint, ModelFamily.of(checkpoint.config()), Layouts.named("modelopt"), modelOpt("experts"), 256L << 20,
        null)
        .plan();
  }
}
