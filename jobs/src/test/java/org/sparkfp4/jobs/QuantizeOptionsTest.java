package org.sparkfp4.jobs;

import static java.util.Map.entry;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import picocli.CommandLine.Model.OptionSpec;

/** Every option of quantize changes the plan's fingerprint, or is known to change no byte. */
class QuantizeOptionsTest {
  private static final Set<String> NO_BYTES =
      Set.of(
          "--input", "--output", "--device", "--dry-run", "--report", "--overwrite", "--verbose", "--quiet",
          "--log-format", "--help", "--version");

  /** Options that want statistics: {@link WeightedSearchTest}, {@link InputScaleTest} and {@link GptqTest} try them. */
  private static final Set<String> OF_STATISTICS =
      Set.of("--statistics", "--input-scale", "--weighting", "--gptq-damping");

  /** What wants an export of the model: {@link ConvertTest} tries it. */
  private static final Set<String> OF_EXPORTS = Set.of("--initializer-names");

  /** Values that each option is tried with; the source allows all of them. */
  private static final Map<String, List<String>> TRIED = Map.ofEntries(
      entry("--layout", List.of("compressed-tensors", "cublas-128x4", "trtllm-gen")),
      entry("--scale-search", List.of("rtn", "four-over-six")),
      entry("--targets", List.of("linears")),
      entry("--include", List.of("model.layers.0.mlp.experts.*")),
      entry("--exclude", List.of("model.layers.0.mlp.experts.*")),
      entry("--family", List.of("family.json")),
      entry("--max-shard-size", List.of("1MB")),
      entry("--strict", List.of("")),
      entry("--allow-partial-fusion", List.of("")),
      entry("--weight-only", List.of("")),
      entry("--keep-source-precision", List.of("")));

  @TempDir
  private Path folder;

  @Test
  void everyOptionIsEitherTriedOrChangesNoByte() {
    Set<String> known = new TreeSet<>(TRIED.keySet());
    known.addAll(NO_BYTES);
    known.addAll(OF_STATISTICS);
    known.addAll(OF_EXPORTS);
    List<String> options = new ArrayList<>();
    for (OptionSpec option : Main.commandLine().getSubcommands().get("quantize").getCommandSpec().options()) {
      options.add(option.longestName());
    }

    assertThat(known).containsAll(options);
  }

  @Test
  void everyOptionChangesTheFingerprint() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    Files.writeString(folder.resolve("family.json"), """
        {"families": [{"name": "qwen3_moe", "model_types": ["qwen3_moe"], "layers": "model.layers.{layer}",
          "experts": "num_experts", "blocks": ["attention", "mlp", "experts"],
          "kept": {"router": ["model.layers.{layer}.mlp.gate"], "embedding": ["model.embed_tokens"],
            "lm_head": ["lm_head"]}}]}""");
    Map<String, String> fingerprints = new TreeMap<>();
    fingerprints.put("none", fingerprint(source, "none"));
    TRIED.forEach((option, values) -> {
      for (String value : values) {
        String given = value.equals("family.json") ? folder.resolve(value).toString() : value;
        String[] arguments = given.isEmpty() ? new String[] {option} : new String[] {option, given};
        fingerprints.put(option + " " + value, fingerprint(source, "with" + option + value, arguments));
      }
    });

    assertThat(new TreeSet<>(fingerprints.values())).as("%s", fingerprints).hasSize(fingerprints.size());
  }

  /** Nor does how a run is carried out: by which processor, by how many tasks at once, from mapped files or read ones. */
  @Test
  void whatChangesNoByteChangesNoFingerprint() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    String plain = fingerprint(source, "plain");

    assertThat(fingerprint(source, "device", "--device", "cpu")).isEqualTo(plain);
    assertThat(fingerprint(source, "report", "--report", folder.resolve("report.html").toString())).isEqualTo(plain);
    assertThat(fingerprint(source, "overwrite", "--overwrite")).isEqualTo(plain);
    assertThat(fingerprint(source, "quiet", "--quiet", "--log-format", "json", "--verbose")).isEqualTo(plain);
    Map<String, String> settings = Map.of("spark.fp4.read", "pread", "spark.fp4.cpu.tier", "java",
        "spark.fp4.unitBytes", "16k", "spark.fp4.columnar", "off", "spark.default.parallelism", "1");
    settings.forEach((key, value) -> assertThat(
        fingerprint(new InProcess().conf(key, value), source, key)).as(key).isEqualTo(plain));
  }

  private String fingerprint(Path source, String name, String... options) {
    return fingerprint(new InProcess(), source, name, options);
  }

  private String fingerprint(InProcess session, Path source, String name, String... options) {
    Path output = folder.resolve(name);
    List<String> arguments =
        new ArrayList<>(List.of("quantize", "--input", source.toString(), "--output", output.toString()));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = session.run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    try {
      JsonNode manifest = new ObjectMapper().readTree(output.resolve("sparkfp4-manifest.json").toFile());
      return manifest.path("fingerprint").asText();
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
