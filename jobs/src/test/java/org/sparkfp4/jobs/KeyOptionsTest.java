package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.safetensors.DType;

/** Every option of quantize-keys that changes bytes makes another cache, which does not stand in the first one's folder. */
class KeyOptionsTest {
  @TempDir
  private static Path folder;

  private static Path keys;

  @BeforeAll
  static void makeCache() throws IOException {
    keys = folder.resolve("in/keys.safetensors");
    write(1);
    SparkSubmitResult made = quantize();
    assertThat(made.status()).as(made.err()).isZero();
  }

  private static void write(double weight) throws IOException {
    new KeyFiles()
        .gaussian("a.index_k", DType.BF16, 0, 100, 128)
        .gaussian("a.k_norm.weight", DType.F32, weight, 128)
        .gaussian("a.k_norm.bias", DType.F32, 0, 128)
        .write(keys);
  }

  private static SparkSubmitResult quantize(String... options) {
    List<String> arguments = new ArrayList<>(List.of("quantize-keys", "--input", keys.toString(), "--output",
        folder.resolve("cache").toString(), "--eps", "1e-5"));
    for (String option : options) {
      if (arguments.contains(option)) {
        arguments.subList(arguments.indexOf(option), arguments.indexOf(option) + 2).clear();
      }

      arguments.add(option);
    }

    return new InProcess().run(arguments.toArray(String[]::new));
  }

  @ParameterizedTest
  @CsvSource({
    "--page-tokens, 32, 'page-tokens 64 there, 32 here'",
    "--pages, 40, 'pages 0 there, 40 here'",
    "--eps, 1e-6, 'eps 1.0E-5 there, 1.0E-6 here'",
    "--round-norm-to-bf16, , 'round-norm-to-bf16 false there, true here'",
    "--hadamard, , 'hadamard false there, true here'",
    "--scale-rule, best-of-two, 'scale-rule ceil there, best-of-two here'",
    "--model, other, 'model  there, other here'"
  })
  void otherOptionIsAnotherCache(String option, String value, String difference) {
    SparkSubmitResult refused = value == null ? quantize(option) : quantize(option, value);

    assertThat(refused.status()).isEqualTo(1);
    assertThat(refused.err())
        .contains(": it holds a cache of other options (" + difference + "), from " + keys)
        .contains("--overwrite to replace it")
        .hasLineCount(1);
  }

  @Test
  void otherNormIsAnotherCacheThoughItsFileLooksTheSame() throws IOException {
    FileTime time = Files.getLastModifiedTime(keys);
    byte[] before = Files.readAllBytes(keys);
    try {
      write(2);
      Files.setLastModifiedTime(keys, time);

      assertThat(quantize().err()).contains(": it holds a cache of other keys, from " + keys);
    } finally {
      Files.write(keys, before);
      Files.setLastModifiedTime(keys, time);
    }

    assertThat(quantize().status()).isZero();
  }
}
