package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;

class DemoIT {
  @TempDir
  private Path folder;

  @Test
  void whatNoDemoMadeIsKept() throws IOException {
    Path source = Files.createDirectory(folder.resolve("source"));
    Files.writeString(source.resolve("thesis.tex"), "only copy");

    SparkSubmitResult result = new InProcess().run("demo", "--output", folder.toString());

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).isEqualTo("Cannot make a checkpoint in file:" + source
        + ": there is something already that no demo made; choose another --output\n");
    assertThat(source.resolve("thesis.tex")).hasContent("only copy");
  }

  /** A folder that has a model called source and what was made of another, nvfp4. */
  @Test
  void outputOfAnotherSourceIsKept() throws IOException {
    Path golden = CheckpointFiles.golden("qwen3_moe_bf16");
    Path output = folder.resolve("nvfp4");
    Files.createDirectory(folder.resolve("source"));
    for (String file : golden.toFile().list()) {
      Files.copy(golden.resolve(file), folder.resolve("source").resolve(file));
    }

    SparkSubmitResult made = new InProcess()
        .run("quantize", "--input", golden.toString(), "--output", output.toString());
    assertThat(made.status()).as(made.err()).isZero();
    Map<String, String> before = Outputs.identities(output, "");

    SparkSubmitResult result = new InProcess().run("demo", "--output", folder.toString());

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith("Cannot write to file:" + output + ": it holds a checkpoint of another plan");
    assertThat(Outputs.identities(output, "")).isEqualTo(before);
  }

  @Test
  void makesQuantizesVerifiesAndCanBeRepeated() {
    SparkSubmitResult result = SparkSubmit.local(2).run("demo", "--output", folder.resolve("demo").toString());

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("No difference found")
        .containsPattern("The checkpoint +" + folder + "/demo/nvfp4\n")
        .containsPattern("Size +13\\d\\.\\d\\d MB in, 5\\d\\.\\d\\d MB out \\(0\\.41 of it\\)")
        .containsPattern("Relative error +0\\.08\\d\\d over the quantized layers")
        .contains("  ./sparkfp4 quantize --input YOUR_CHECKPOINT --output YOUR_CHECKPOINT-NVFP4 --dry-run");
    Map<String, String> before = Outputs.identities(folder.resolve("demo/nvfp4"), "");

    SparkSubmitResult again = new InProcess().run("demo", "--output", folder.resolve("demo").toString());

    assertThat(again.status()).as(again.err()).isZero();
    assertThat(Outputs.identities(folder.resolve("demo/nvfp4"), "")).isEqualTo(before);
  }
}
