package org.sparkfp4.verify;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.safetensors.DType;

/**
 * Any config.json and hf_quant_config.json beside one expert that is quantized, one that is stored as in its source, and
 * a head that is not quantized: what is said wrongly is a difference, and where there is none a loader finds lists of
 * strings where it goes through lists.
 */
class ClaimFuzz {
  private static final Configuration CONF = new Configuration(false);
  private static final ObjectNode SOURCE = JsonNodeFactory.instance.objectNode().put("model_type", "qwen3_moe");
  private static final String EXPERT = "model.layers.0.mlp.experts.0.up_proj";
  private static final List<LocatedTensor> KEPT = List.of(tensor("lm_head.weight", DType.BF16, List.of(32L, 32L)));
  private static final Map<String, StoredForm> STORED =
      Map.of("model.layers.1.mlp.experts.0.up_proj", new StoredForm(CodeType.E4M3, 0, 0, false));

  /** Bytes of a file in whose proportion memory is allowed for an expression: a matcher leaves what it tried behind. */
  private static final int EXPRESSION = 1 << 19;

  private Path folder;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("claim-fuzz-");
  }

  @FuzzTest
  void claims(byte[] data) throws IOException {
    byte[][] files = Hostile.split(data, 2);
    Path quantConfig = folder.resolve(Checkpoint.QUANT_CONFIG);
    Files.deleteIfExists(quantConfig);
    if (files[1].length > 0) {
      Files.write(quantConfig, files[1]);
    }

    String text = new String(data, StandardCharsets.ISO_8859_1);
    int bytes = data.length + EXPRESSION * (text.length() - text.replace("re:", "").length()) / 3;
    for (Scheme scheme : Scheme.values()) {
      for (boolean weightOnly : List.of(false, true)) {
        for (Map<String, StoredForm> stored : List.of(Map.<String, StoredForm>of(), STORED)) {
          Hostile.read(bytes, () -> check(
              scheme, weightOnly, Checkpoint.parseConfig("model", new ByteArrayInputStream(files[0])),
              QuantizedFolder.open(folder.toString(), CONF).json(Checkpoint.QUANT_CONFIG), stored));
        }
      }
    }
  }

  private static void check(
      Scheme scheme, boolean weightOnly, JsonNode config, JsonNode second, Map<String, StoredForm> stored) {
    Differences differences = new Differences(100);
    List<QuantizationClaim> claims = new ClaimReader(differences).read(scheme, config, second);
    new ConfigCheck(claims, differences).check(List.of(layer(scheme, weightOnly)), KEPT, stored);
    CarriedConfig carried = new CarriedConfig(differences);
    carried.check(SOURCE, config);
    carried.checkStorage(SOURCE, config);
    if (differences.count() == 0) {
      assertThat(claims).as("what is said of quantization").isNotEmpty();
      requireStrings(config.at("/quantization_config/ignore"));
      requireStrings(second.at("/quantization/exclude_modules"));
      config.at("/quantization_config/config_groups").forEach(group -> requireStrings(group.path("targets")));
    }
  }

  private static void requireStrings(JsonNode list) {
    assertThat(list.isMissingNode() || list.isArray()).as("a list: %s", list).isTrue();
    list.forEach(entry -> assertThat(entry.isTextual()).as("%s of %s", entry, list).isTrue());
  }

  private static QuantizedLayer layer(Scheme scheme, boolean weightOnly) {
    LocatedTensor weight = tensor(EXPERT + ".weight", DType.BF16, List.of(32L, 32L));
    return new QuantizedLayer(EXPERT, scheme, new SourceWeight(weight, null, DType.BF16.name()),
        tensor(scheme.packed(EXPERT, false), DType.U8, List.of(32L, 16L)),
        tensor(scheme.scales(EXPERT, false), DType.F8_E4M3, List.of(32L, 2L)),
        tensor(scheme.globalScale(EXPERT, false), DType.F32, List.of()),
        weightOnly ? null : tensor(scheme.inputScale(EXPERT, false), DType.F32, List.of()), List.of(), false);
  }

  private static LocatedTensor tensor(String name, DType dtype, List<Long> shape) {
    long elements = shape.stream().reduce(1L, Math::multiplyExact);
    return new LocatedTensor(name, dtype, shape, "model.safetensors", 0, dtype.bytes(elements));
  }

  @AfterEach
  void removeFolder() {
    FileUtil.fullyDelete(folder.toFile());
  }
}
