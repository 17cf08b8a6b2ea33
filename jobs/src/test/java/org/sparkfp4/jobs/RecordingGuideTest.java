package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;

/**
 * RECORDING.md: what its scripts recorded of models in PyTorch ({@code python/record_guide.py}, which CI cannot run: PyTorch
 * is gigabytes) goes through the commands that it names.
 */
class RecordingGuideTest {
  private static final Path RECORDED = Path.of("src/test/resources/recording").toAbsolutePath();
  private static final Path MODEL = CheckpointFiles.golden("qwen3_moe_bf16");

  @TempDir
  private Path folder;

  @Test
  void theFilesAreThoseOfTheGuidesScripts() throws Exception {
    String scripts = Pattern.compile("```python\n(.*?)```", Pattern.DOTALL).matcher(Files.readString(Path.of("RECORDING.md")))
        .results().map(block -> block.group(1)).collect(Collectors.joining());
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(scripts.getBytes(StandardCharsets.UTF_8));
    assertThat(RECORDED.resolve("scripts.sha256")).as("run python/record_guide.py again and commit what it makes")
        .content().isEqualTo(HexFormat.of().formatHex(digest) + "\n");
  }

  @Test
  void activationsOfEveryLayerAreTaken() throws IOException {
    Path activations = RECORDED.resolve("activations");
    Path statistics = folder.resolve("statistics");
    succeed("calibrate", "--input", activations.toString(), "--model", MODEL.toString(), "--output", statistics.toString());

    JsonNode modules = new ObjectMapper().readTree(statistics.resolve("statistics.json").toFile()).path("modules");
    TreeSet<String> found = new TreeSet<>();
    modules.forEach(module -> found.add(module.path("module").asText()));
    for (int layer = 0; layer < 2; layer++) {
      String path = "model.layers." + layer + ".";
      assertThat(found).contains(path + "self_attn.q_proj", path + "self_attn.o_proj",
          path + "mlp.experts.0.gate_proj", path + "mlp.experts.3.down_proj");
    }

    String out = succeed("quantize", "--input", MODEL.toString(), "--output", folder.resolve("weighted").toString(),
        "--statistics", statistics.toString(), "--scale-search", "weighted", "--targets", "linears");
    assertThat(out).contains("inputs     scales by amax: ").doesNotContain("no statistics", "no token");
  }

  @Test
  void eachBatchIsQuantized() throws IOException {
    succeed("quantize-activations", "--input", RECORDED.resolve("activations").toString(), "--output",
        folder.resolve("nvfp4").toString());

    for (String batch : new String[] {"batch-00000", "batch-00001"}) {
      Map<String, StoredTensor> made = CheckpointFiles.read(folder.resolve("nvfp4").resolve(batch));
      StoredTensor packed = made.get("model.layers.1.mlp.input_packed");
      assertThat(packed.shape()).containsExactly(batch.endsWith("0") ? 20L : 12L, 64L);
    }
  }

  @Test
  void keysBecomeACacheOfTheirTokens() {
    Path keys = RECORDED.resolve("keys");
    Path cache = folder.resolve("cache");
    succeed("quantize-keys", "--input", keys.toString(), "--output", cache.toString());
    assertThat(succeed("verify-keys", "--source", keys.toString(), "--cache", cache.toString()))
        .contains("model.layers.1.self_attn.indexer: 70 keys, 0 differ").endsWith("good\n");
    succeed("export-keys", "--cache", cache.toString(), "--tokens", keys.resolve("tokens/tokens.safetensors").toString(),
        "--format", "vllm", "--output", folder.resolve("exported").toString());
  }

  private static String succeed(String... arguments) {
    SparkSubmitResult result = new InProcess().run(arguments);
    assertThat(result.status()).as(result.out() + result.err()).isZero();
    return result.out();
  }
}
