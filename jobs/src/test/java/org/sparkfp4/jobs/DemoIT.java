package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DemoIT {
  @TempDir
  private Path folder;

  @Test
  void makesQuantizesVerifiesAndCanBeRepeated() {
    SparkSubmitResult result = SparkSubmit.local(2).run("demo", "--output", folder.resolve("demo").toString());

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("No difference found")
        .containsPattern("The checkpoint +" + folder + "/demo/nvfp4\n")
        .containsPattern("Size +130\\.\\d MiB in, 53\\.\\d MiB out \\(0\\.41 of it\\)")
        .containsPattern("Relative error +0\\.09\\d\\d over the quantized layers")
        .contains("  ./sparkfp4 quantize --input YOUR_CHECKPOINT --output YOUR_CHECKPOINT-NVFP4 --dry-run");
    Map<String, String> before = Outputs.identities(folder.resolve("demo/nvfp4"), "");

    SparkSubmitResult again = new InProcess().run("demo", "--output", folder.resolve("demo").toString());

    assertThat(again.status()).as(again.err()).isZero();
    assertThat(Outputs.identities(folder.resolve("demo/nvfp4"), "")).isEqualTo(before);
  }
}
