package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.checkpoint.SyntheticModel;
import picocli.CommandLine;

class InspectCommandTest {
  private static final Path GOLDEN = Path.of("src/test/resources/golden/qwen3_moe_bf16").toAbsolutePath();

  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  @TempDir
  private Path folder;

  @Test
  void tellsTotalsByTypeAndName() {
    int status = run("inspect", GOLDEN.toString());

    assertThat(status).isZero();
    assertThat(out.toString())
        .startsWith("file:" + GOLDEN)
        .contains("model type    qwen3_moe\n", "quantization  none\n", "in 3 shards\n")
        .containsPattern("(?m)^BF16 +\\d+ +\\d+\\.\\d\\d kB$")
        .containsPattern("(?m)^model\\.layers\\.\\*\\.mlp\\.experts\\.\\*\\.gate_proj\\.weight +BF16 +\\[64, 128\\] +8 +131\\.07 kB$");
  }

  @Test
  void listsEveryTensorOnDemand() {
    int status = run("inspect", "--tensors", GOLDEN.toString());

    assertThat(status).isZero();
    assertThat(out.toString()).containsPattern(
        "(?m)^model\\.layers\\.1\\.mlp\\.experts\\.3\\.down_proj\\.weight +BF16 +\\[128, 64\\] +model-0000\\d-of-00003\\.safetensors +16384$");
  }

  @Test
  void jsonHasAllOfIt() throws IOException {
    Files.copy(GOLDEN.resolve("model-00001-of-00003.safetensors"), folder.resolve("model.safetensors"));
    Files.writeString(folder.resolve("config.json"), """
        {"model_type": "outer", "text_config": {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}}
        """);

    int status = run("inspect", "--json", folder.toString());

    assertThat(status).as(err.toString()).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toString());
    assertThat(json.path("modelType").textValue()).isEqualTo("outer");
    assertThat(json.path("quantization").path("quant_algo").textValue()).isEqualTo("NVFP4");
    assertThat(json.path("shards").intValue()).isEqualTo(1);
    assertThat(json.path("tensors").size()).isEqualTo(json.path("total").path("tensors").intValue()).isPositive();
    assertThat(json.path("tensors").get(0).fieldNames()).toIterable()
        .contains("name", "dtype", "shape", "file", "offset", "length");
  }

  @Test
  void tellsWhatWouldBecomeOfEachRole() {
    int status = run("inspect", GOLDEN.toString(), "--targets", "linears", "--exclude", "*.self_attn.o_proj");

    assertThat(status).as(err.toString()).isZero();
    assertThat(out.toString())
        .contains("family        qwen3_moe\n")
        .containsPattern("(?m)^role +stored +becomes +because +tensors +bytes$")
        .containsPattern("(?m)^routed experts +BF16 +NVFP4 +24 +")
        .containsPattern("(?m)^attention +BF16 +NVFP4 +\\d+ +")
        .containsPattern("(?m)^attention +BF16 +as it is +excluded by \\*\\.self_attn\\.o_proj +2 +")
        .containsPattern("(?m)^router +BF16 +as it is +router +2 +")
        .containsPattern("(?m)^norm +BF16 +as it is +no matrix +5 +")
        .contains("\nwarning       input scales are 1.0").doesNotContain("problem")
        .containsPattern("(?m)^quantized +\\d\\d\\.\\d % of the parameters, ");
  }

  @Test
  void whatNoFamilyQuantizesSoundsLikeNoFault() throws IOException {
    SyntheticModel model = SyntheticModel.of("kimi_k3");
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    model.tensors().forEach(tensor -> tensors.put(
        tensor.name(), new StoredTensor(tensor.dtype(), tensor.shape(), new byte[(int) tensor.length()])));
    CheckpointFiles.write(folder.resolve("model.safetensors"), tensors);
    Files.writeString(folder.resolve("config.json"), model.config().toString());

    assertThat(run("inspect", folder.toString())).as(err.toString()).isZero();
    assertThat(out.toString())
        .containsPattern("(?m)^norm +BF16 +as it is +no matrix +\\d+ +")
        .containsPattern("(?m)^other +BF16 +as it is +no layer that its family quantizes +\\d+ +")
        .doesNotContain("not named");
  }

  @Test
  void tellsWhyThereIsNoPlan() throws IOException {
    run("inspect", GOLDEN.toString(), "--exclude", "*.nothing");
    assertThat(out.toString()).contains("problem       Invalid --exclude *.nothing: it matches no module");

    Files.copy(GOLDEN.resolve("model-00001-of-00003.safetensors"), folder.resolve("model.safetensors"));
    Files.writeString(folder.resolve("config.json"), "{\"model_type\": \"unheard_of\"}");
    assertThat(run("inspect", "--json", folder.toString())).isZero();
    String text = out.toString();
    JsonNode plan = new ObjectMapper().readTree(text.substring(text.indexOf("\n{") + 1)).path("plan");
    assertThat(plan.path("family").isNull()).isTrue();
    assertThat(plan.path("problems").get(0).textValue())
        .startsWith("Cannot tell the model family: config.json has model_type [unheard_of]");
  }

  @Test
  void takesAFamilyOfTheUsersOwn() throws IOException {
    Files.writeString(folder.resolve("family.json"), "{\"families\": [{\"name\": \"x\", \"layers\": \"l.{layer}\"}]}");

    assertThat(run("inspect", GOLDEN.toString(), "--family", folder.resolve("none.json").toString())).isEqualTo(1);
    assertThat(run("inspect", GOLDEN.toString(), "--family", folder.resolve("family.json").toString())).isEqualTo(1);
    assertThat(err.toString().lines()).containsExactly(
        "Cannot read the family file " + folder.resolve("none.json") + ": there is none",
        "Invalid family file " + folder.resolve("family.json")
            + ": field families[0]: Invalid model family x: it has neither model_types nor architectures");
  }

  @Test
  void aValueThatAnOptionDoesNotTakeIsAnErrorOfUsage() {
    assertThat(run("inspect", GOLDEN.toString(), "--layout", "foo")).isEqualTo(2);
    assertThat(run("inspect", GOLDEN.toString(), "--targets", "foo")).isEqualTo(2);
    assertThat(err.toString()).contains("Invalid layout: foo; known are", "Invalid targets: foo")
        .contains("See 'sparkfp4 inspect --help'.");
  }

  @Test
  void missingFolderIsOneLine() {
    int status = run("inspect", folder.resolve("nowhere").toString());

    assertThat(status).isEqualTo(1);
    assertThat(err.toString()).startsWith("Invalid checkpoint ").contains("nowhere").hasLineCount(1);
  }

  @Test
  void verboseAddsStackTrace() {
    int status = run("inspect", "-v", folder.resolve("nowhere").toString());

    assertThat(status).isEqualTo(1);
    assertThat(err.toString()).contains("\tat org.sparkfp4.jobs.InspectCommand");
  }

  @Test
  void missingParameterIsAnErrorOfUsage() {
    int status = run("inspect");

    assertThat(status).isEqualTo(2);
    assertThat(err.toString()).contains("Missing required parameter: 'DIR'");
  }

  private int run(String... arguments) {
    CommandLine line = Main.commandLine();
    line.setOut(new PrintWriter(out, true));
    line.setErr(new PrintWriter(err, true));
    return line.execute(arguments);
  }
}
